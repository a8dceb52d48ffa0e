// A comparison of two fake engines in a folder of the test's own: scripts in, record and ledger inputs out.
#pragma once

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <unistd.h>

#include "core/record/read.h"
#include "core/scopes/scopes.h"
#include "fake_model.h"
#include "platform/clock.h"
#include "platform/interrupt.h"
#include "session/compare.h"

namespace opledger::fake {

inline Result<std::string> text_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Error::bad_input(path + ": missing");
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

inline Result<std::shared_ptr<const core::RuleSet>> rules_of(const std::string& family) {
  const std::string folder = std::string(OPLEDGER_SOURCE_DIR) + "/schema/rules/";
  Result<std::string> text = text_of(folder + family + ".json");
  if (!text) return text.error();
  return core::parse_rules(*text, family,
                           [folder](const std::string& name) { return text_of(folder + name + ".json"); });
}

class FakeSession : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string(info->test_suite_name()) + "_" + info->name();
    for (char& c : name) c = c == '/' ? '_' : c;
    // With our process id: the same test may run twice at once on one machine.
    folder_ = ::testing::TempDir() + "fake_" + std::to_string(::getpid()) + "_" + name;
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    write_model(model_path(), 2, 64, "llama");
    script("a", nlohmann::json::object());
    script("b", nlohmann::json::object());
  }

  [[nodiscard]] std::string model_path() const { return folder_ + "/model.gguf"; }
  [[nodiscard]] std::string program(const std::string& side) const { return folder_ + "/" + side; }
  [[nodiscard]] std::string spec(const std::string& side) const { return "exec:" + program(side); }

  /// Plants times in a side's engine (2 us a unit and token unless told) and whatever else `script` says.
  void script(const std::string& side, nlohmann::json script) {
    if (!script.contains("ns_per_token")) script["ns_per_token"] = {{"default", 2000}};
    std::filesystem::remove(program(side));
    std::filesystem::create_symlink(OPLEDGER_FAKE_ENGINE, program(side));
    std::ofstream(program(side) + ".json") << script.dump();
  }

  [[nodiscard]] session::CompareOptions options() const {
    session::CompareOptions options;
    options.spec_a = spec("a");
    options.spec_b = spec("b");
    options.workloads = {{8}, {4}, {8}};
    options.flags = {{"m", model_path()}, {"t", "1"}};
    options.budget_s = 300;  // never used up: rounds and groups end a session, so no test knows the time
    options.max_rounds = 2;
    options.max_groups = 3;
    options.largest_probe_bytes = int64_t{4} << 20;  // the whole probe takes half a minute under TSan
    options.command = {"opledger", "compare", "a", "b"};
    options.version = "test";
    options.log_folder = folder_ + "/logs";
    options.lock_path = folder_ + "/lock";
    options.engine_limit_ns = 5'000'000'000;
    options.max_message_bytes = size_t{4} << 20;
    options.rules_of = rules_of;
    return options;
  }

  Result<session::CompareOutcome> compare(const session::CompareOptions& options) {
    const platform::Interrupt interrupt;
    session::Progress progress(false, clock_);
    return session::run_compare(options, clock_, interrupt, progress);
  }

  void TearDown() override {
    if (!HasFailure()) std::filesystem::remove_all(folder_);
  }

  platform::SteadyClock clock_;
  std::string folder_;
};

}  // namespace opledger::fake
