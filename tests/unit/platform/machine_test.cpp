// Facts from texts of /proc as real machines print them (an Intel server, an arm64 board), shortened.
#include "platform/machine.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace opledger::platform {
namespace {

TEST(CpuFlags, AreNamedAsGgmlNamesThem) {
  EXPECT_EQ(detail::isa_from_flags("fpu sse4_2 avx f16c avx2 fma avx512f avx512_vnni hypervisor"),
            (std::vector<std::string>{"SSE42", "AVX", "AVX2", "F16C", "FMA", "AVX512F", "AVX512_VNNI"}));
}

TEST(CpuFlags, OfArmAreKnownToo) {
  EXPECT_EQ(detail::isa_from_flags("fp asimd asimddp i8mm sve"),
            (std::vector<std::string>{"NEON", "DOTPROD", "MATMUL_INT8", "SVE"}));
}

TEST(CpuFlags, AWordInsideAnotherIsNoFlag) {
  EXPECT_TRUE(detail::isa_from_flags("xavx2 notfma").empty());
}

TEST(ProcValue, IsTheFirstOfItsKey) {
  const std::string text =
      "processor\t: 0\nmodel name\t: Some CPU @ 2.50GHz\nprocessor\t: 1\nmodel name\t: Other\n";
  EXPECT_EQ(detail::value_of(text, "model name"), "Some CPU @ 2.50GHz");
  EXPECT_EQ(detail::value_of(text, "absent"), "");
}

TEST(MachineFactsHere, SayAtLeastWhatTheKernelAlwaysKnows) {
  const core::MachineFacts facts = machine_facts();
  EXPECT_GE(facts.cores, 1);
  EXPECT_GT(facts.memory_bytes, 0);
  EXPECT_FALSE(facts.kernel.empty());
}

TEST(EngineEnvironment, HoldsOnlyWhatChangesEngines) {
  ASSERT_EQ(::setenv("GGML_TEST_SWITCH", "1", 1), 0);
  ASSERT_EQ(::setenv("UNRELATED_SWITCH", "1", 1), 0);
  const std::vector<std::string> found = engine_environment();
  EXPECT_NE(std::find(found.begin(), found.end(), "GGML_TEST_SWITCH=1"), found.end());
  EXPECT_EQ(std::find(found.begin(), found.end(), "UNRELATED_SWITCH=1"), found.end());
}

TEST(EngineEnvironment, HoldsThePlantedFaults) {
  ASSERT_EQ(::setenv("OPLEDGER_GGML_FAULT", "idle_copies", 1), 0);
  ASSERT_EQ(::setenv("OPLEDGER_CACHE", "/anywhere", 0), 0);
  const std::vector<std::string> found = engine_environment();
  EXPECT_NE(std::find(found.begin(), found.end(), "OPLEDGER_GGML_FAULT=idle_copies"), found.end());
  EXPECT_TRUE(std::none_of(found.begin(), found.end(),
                           [](const std::string& entry) { return entry.starts_with("OPLEDGER_CACHE="); }));
}

}  // namespace
}  // namespace opledger::platform
