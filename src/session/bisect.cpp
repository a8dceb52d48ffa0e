// Depth-first halving; a set whose halves are both innocent is guilty as a whole.
#include "session/bisect.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace opledger::session {
namespace {

using Units = std::vector<core::UnitName>;

class Search {
 public:
  Search(const ReplayTest& keeps_result, int max_tests)
      : keeps_result_(keeps_result), tests_left_(max_tests) {}

  /// `units` is known to break the result.
  Status isolate(const Units& units) {
    if (units.size() == 1) {
      breaking.alone.push_back(units.front());
      return {};
    }
    if (tests_left_ < 2) {
      breaking.together.insert(breaking.together.end(), units.begin(), units.end());
      return {};
    }
    const auto middle = units.begin() + static_cast<std::ptrdiff_t>(units.size() / 2);
    const Units halves[2] = {Units(units.begin(), middle), Units(middle, units.end())};
    bool is_innocent[2] = {true, true};
    for (int i = 0; i < 2; ++i) {
      Result<bool> keeps = test(halves[i]);
      if (!keeps) return keeps.error();
      is_innocent[i] = *keeps;
    }
    if (is_innocent[0] && is_innocent[1]) {
      breaking.together.insert(breaking.together.end(), units.begin(), units.end());
      return {};
    }
    for (int i = 0; i < 2; ++i) {
      if (is_innocent[i]) continue;
      if (Status status = isolate(halves[i]); !status) return status;
    }
    return {};
  }

  Result<bool> test(const Units& units) {
    --tests_left_;
    return keeps_result_(units);
  }

  [[nodiscard]] Units without_breaking(const Units& units) const {
    const auto is_in = [](const Units& list, const core::UnitName& unit) {
      return std::find(list.begin(), list.end(), unit) != list.end();
    };
    Units rest;
    for (const core::UnitName& unit : units) {
      if (!is_in(breaking.alone, unit) && !is_in(breaking.together, unit)) rest.push_back(unit);
    }
    return rest;
  }

  Breaking breaking;

 private:
  const ReplayTest& keeps_result_;
  int tests_left_;
};

}  // namespace

Result<Breaking> find_breaking_units(const Units& units, const ReplayTest& keeps_result, int max_tests) {
  Search search(keeps_result, max_tests);
  Units suspects = units;
  while (true) {
    if (Status status = search.isolate(suspects); !status) return status.error();
    suspects = search.without_breaking(units);
    if (suspects.empty()) break;
    // Each half was innocent beside guilty ones taken out; together the innocent must be tried once more.
    Result<bool> keeps = search.test(suspects);
    if (!keeps) return keeps.error();
    if (*keeps) break;
  }
  return std::move(search.breaking);
}

}  // namespace opledger::session
