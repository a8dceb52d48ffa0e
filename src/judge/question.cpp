#include "judge/question.h"

#include <nlohmann/json.hpp>

namespace opledger::judge {

nlohmann::json to_json(const Question& question) {
  return {{"a", question.a},
          {"b", question.b},
          {"flags", question.flags},
          {"figure", question.figure},
          {"higher_is_better", question.is_higher_better}};
}

}  // namespace opledger::judge
