// Lines as docs/record.md gives them, written by hand here, and their way through writer and reader.
#include <gtest/gtest.h>
#include <string>

#include "core/record/read.h"
#include "core/record/write.h"

namespace opledger::core {
namespace {

const std::string kHeader =
    R"({"type":"header","schema":"opledger-record","version":2,"opledger":{"version":"0.1.0"},"command":["opledger"],)"
    R"("started":"2026-01-02T03:04:05Z","seed":7,"machine":{"cpu":"X","cores":2,"isa":["AVX2"],"memory_bytes":1000,)"
    R"("virtual":true,"l2_bytes":null,"l3_bytes":64,"kernel":"6"},"budget_s":180,"rows":"category"})";

const std::string kBlock =
    R"({"type":"block","side":"b","workload":"pp512","group":2,"round":1,"stint":5,"turn":7,"sequence":9,"block":{"workload":"pp512",)"
    R"("arm":"stamp","verify":false,"passes":[{"wall_ns":120,"graph_ns":100,"instrument_ns":3,"digest":0}],)"
    R"("digests":[["aa","bb"]],"logits":"ok","unit_ns":[[40,50]],"head_ns":[6],"tail_ns":[4],"copy_ns":null,)"
    R"("state_digest":null,"threads":[{"cpu_ns":110,"run_delay_ns":2}],"voluntary_switches":1,)"
    R"("involuntary_switches":0,"started_ns":1000,"ended_ns":1200,"elapsed_ns":150}})";

// What must stand before that block.
const std::string kBefore =
    kHeader + "\n" +
    R"({"type":"workload","id":"pp512","kind":"prefill","tokens_per_pass":512,"depth_tokens":0})" + "\n" +
    R"({"type":"group","group":2})" + "\n";

Result<Record> parse(const std::string& lines) {
  return parse_record(lines, "r.json");
}

std::string error_of(const std::string& lines) {
  const auto record = parse(lines);
  return record ? "no error" : record.error().message;
}

TEST(Record, ReadsHeaderAndBlock) {
  const auto record = parse(kBefore + kBlock + "\n");
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->header.machine.cores, 2);
  EXPECT_EQ(record->header.machine.is_virtual, true);
  EXPECT_FALSE(record->header.machine.l2_bytes);
  EXPECT_EQ(record->header.machine.l3_bytes, 64);
  ASSERT_EQ(record->blocks.size(), 1U);
  const Block& block = record->blocks[0];
  EXPECT_EQ(block.place.side, Side::kB);
  EXPECT_EQ(block.place.stint, 5);
  EXPECT_EQ(block.place.turn, 7);
  EXPECT_EQ(block.place.sequence, 9);
  EXPECT_EQ(block.elapsed_ns, 150);
  EXPECT_EQ(block.arm, "stamp");
  EXPECT_EQ(block.passes.at(0).graph_ns, 100);
  EXPECT_EQ((*block.unit_ns).at(0), (std::vector<int64_t>{40, 50}));
  EXPECT_FALSE(block.copy_ns);
  EXPECT_EQ(block.threads.at(0).run_delay_ns, 2);
  EXPECT_TRUE(record->doubts.empty());
  EXPECT_FALSE(record->end_reason);
}

TEST(Record, ReadsWhatPlantedWorkDid) {
  const auto with = [](const std::string& planted) {
    std::string line = kBlock;
    return kBefore + line.insert(line.find("\"threads\""), "\"planted\":" + planted + ",") + "\n";
  };
  const auto record = parse(with(R"({"spins":4,"spun_ns":80,"late_spins":1,"late_ns":50})"));
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->blocks.at(0).planted->spins, 4);
  EXPECT_EQ(record->blocks.at(0).planted->late_ns, 50);
  EXPECT_FALSE(parse(kBefore + kBlock + "\n")->blocks.at(0).planted);
  EXPECT_NE(error_of(with(R"({"spins":4,"spun_ns":80,"late_spins":5,"late_ns":50})")).find("late_spins"),
            std::string::npos);
}

TEST(Record, IgnoresACutLastLineAndSaysSo) {
  for (size_t kept = 1; kept < kBlock.size(); ++kept) {
    const auto record = parse(kBefore + kBlock + "\n" + kBlock.substr(0, kept));
    ASSERT_TRUE(record) << kept;
    EXPECT_EQ(record->blocks.size(), 1U);
    ASSERT_EQ(record->doubts.size(), 1U) << kept;
    EXPECT_NE(record->doubts[0].find("cut short"), std::string::npos);
  }
}

TEST(Record, RefusesARecordCutInsideItsHeader) {
  EXPECT_EQ(error_of(kHeader.substr(0, 40)),
            "r.json: line 1 is not a JSON object: is this an opledger record?");
}

TEST(Record, RefusesABrokenLineThatIsNotTheLast) {
  EXPECT_EQ(error_of(kHeader + "\n{\"type\":\n" + kBlock + "\n"),
            "r.json: line 2 is not a JSON object: is this an opledger record?");
}

TEST(Record, IgnoresUnknownTypesAndFields) {
  const auto record =
      parse(kHeader + "\n{\"type\":\"ceiling\",\"x\":1}\n{\"type\":\"end\",\"reason\":\"budget\",\"y\":2}\n");
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->end_reason, "budget");
  ASSERT_EQ(record->doubts.size(), 1U);
  EXPECT_NE(record->doubts[0].find("\"ceiling\""), std::string::npos);
}

TEST(Record, NamesFileLineAndKeyOfWhatIsWrong) {
  EXPECT_EQ(error_of(kHeader + "\n{\"type\":\"group\"}\n"),
            "r.json: line 2: key \"group\" is missing or not an integer");
  EXPECT_EQ(error_of(kHeader + "\n{\"type\":\"group\",\"group\":\"one\"}\n"),
            "r.json: line 2: key \"group\" is missing or not an integer");
  EXPECT_EQ(error_of("{\"type\":\"end\",\"reason\":\"complete\"}\n").substr(0, 21), "r.json: line 1: the f");
  EXPECT_EQ(error_of(""), "r.json: is empty, no record was written");
  std::string block = kBlock;
  block.replace(block.find("\"digest\":0"), 10, "\"digest\":4");
  EXPECT_EQ(error_of(kBefore + block + "\n"),
            "r.json: line 4: key \"digest\" is missing or not an index into digests");
  block = kBlock;
  block.replace(block.find("[[40,50]]"), 9, "[[40,50],[1,2]]");
  EXPECT_EQ(error_of(kBefore + block + "\n"),
            "r.json: line 4: key \"unit_ns\" is missing or not a list with one list per step");
}

std::string block_with(const std::string& part, const std::string& instead) {
  std::string block = kBlock;
  const size_t at = block.find(part);
  EXPECT_NE(at, std::string::npos) << part;
  return block.replace(at, part.size(), instead);
}

TEST(Record, RefusesImpossibleTimesAndNamesTheKey) {
  struct Given {
    const char* part;
    const char* instead;
    const char* key;
  };
  for (const Given& given : {Given{"\"wall_ns\":120", "\"wall_ns\":-120", "wall_ns"},
                             Given{"\"wall_ns\":120", "\"wall_ns\":99", "graph_ns"},
                             Given{"\"graph_ns\":100", "\"graph_ns\":0", "graph_ns"},
                             Given{"\"wall_ns\":120", "\"wall_ns\":1000000000000001", "wall_ns"},
                             Given{"\"instrument_ns\":3", "\"instrument_ns\":-3", "instrument_ns"},
                             Given{"\"digest\":0", "\"step_graph_ns\":[60,39],\"digest\":0", "step_graph_ns"},
                             Given{"\"digest\":0", "\"step_graph_ns\":[0,100],\"digest\":0", "step_graph_ns"},
                             Given{"[40,50]", "[-40,50]", "unit_ns"}, Given{"[6]", "[-6]", "head_ns"},
                             Given{"\"cpu_ns\":110", "\"cpu_ns\":-1", "cpu_ns"},
                             Given{"\"run_delay_ns\":2", "\"run_delay_ns\":-2", "run_delay_ns"},
                             Given{"\"ended_ns\":1200", "\"ended_ns\":900", "ended_ns"},
                             Given{"\"elapsed_ns\":150", "\"elapsed_ns\":201", "elapsed_ns"}}) {
    const std::string error = error_of(kBefore + block_with(given.part, given.instead) + "\n");
    EXPECT_EQ(error.find(std::string("r.json: line 4: key \"") + given.key + "\" is "), 0U) << error;
  }
}

TEST(Record, TheTimesOfAnUntimedBlockMayBeZero) {
  std::string block = block_with("\"wall_ns\":120,\"graph_ns\":100", "\"wall_ns\":0,\"graph_ns\":0");
  block.replace(block.find("\"verify\":false"), 14, "\"verify\":true");
  EXPECT_EQ(error_of(kBefore + block + "\n"), "no error");
}

TEST(Record, WhatTheEngineDidNotSayStaysUnknown) {
  std::string block = block_with("\"logits\":\"ok\",", "");
  block.replace(block.find(",\"run_delay_ns\":2"), 17, "");
  const auto record = parse(kBefore + block + "\n");
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_FALSE(record->blocks.at(0).logits);
  EXPECT_FALSE(record->blocks.at(0).threads.at(0).run_delay_ns);
}

TEST(Record, RefusesLinesThatContradictEarlierOnes) {
  const std::string engine =
      R"({"type":"engine","side":"a","spec":"x","name":"x","initialize":{"engine":{"family":"f"}},)"
      R"("load_params":{},"load":{}})";
  const std::string model =
      R"({"type":"model","side":"b","path":"m","bytes":1,"architecture":"llama","metadata":{},"tensors":[]})";
  const std::string workload = R"({"type":"workload","id":"pp512","kind":"decode","tokens_per_pass":4})";
  const std::string end = R"({"type":"end","reason":"complete"})";
  const std::string more = "\n";
  EXPECT_EQ(error_of(kBefore + engine + more + engine + more),
            "r.json: line 5: key \"side\": an engine line of side a stands there already");
  EXPECT_EQ(error_of(kBefore + model + more + model + more),
            "r.json: line 5: key \"side\": a model line of side b stands there already");
  EXPECT_EQ(error_of(kBefore + workload + more),
            "r.json: line 4: key \"id\": a workload line of \"pp512\" stands there already");
  EXPECT_EQ(error_of(kBefore + R"({"type":"group","group":2})" + more),
            "r.json: line 4: key \"group\": 2 does not come after 2");
  EXPECT_EQ(error_of(kBefore + kBlock + more + kBlock + more),
            "r.json: line 5: key \"sequence\": 9 does not come after 9");
  std::string next = block_with("\"sequence\":9", "\"sequence\":10");
  EXPECT_EQ(error_of(kBefore + kBlock + more + next + more), "no error");
  next.replace(next.find("\"round\":1"), 9, "\"round\":2");
  EXPECT_EQ(error_of(kBefore + kBlock + more + next + more),
            "r.json: line 5: key \"stint\": 5 is of another workload, group or round already");
  next.replace(next.find("\"stint\":5"), 9, "\"stint\":6");
  std::string shared = block_with("\"sequence\":9", "\"sequence\":10");
  shared.replace(shared.find("\"side\":\"b\""), 10, "\"side\":\"a\"");
  EXPECT_EQ(error_of(kBefore + kBlock + more + shared + more),
            "r.json: line 5: key \"turn\": 7 is of another side, workload, group or round already");
  shared.replace(shared.find("\"turn\":7"), 8, "\"turn\":8");
  EXPECT_EQ(error_of(kBefore + kBlock + more + shared + more), "no error");
  EXPECT_EQ(error_of(kBefore + kBlock + more + next + more),
            "r.json: line 5: key \"turn\": 7 is of another side, workload, group or round already");
  next.replace(next.find("\"turn\":7"), 8, "\"turn\":6");
  EXPECT_EQ(error_of(kBefore + kBlock + more + next + more), "r.json: line 5: key \"turn\": 6 comes after 7");
  EXPECT_EQ(error_of(kBefore +
                     block_with("\"workload\":\"pp512\",\"group\"", "\"workload\":\"pp9\",\"group\"") + more),
            "r.json: line 4: key \"workload\": no workload line of \"pp9\" stands before this block");
  EXPECT_EQ(error_of(kBefore + block_with("\"group\":2", "\"group\":3") + more),
            "r.json: line 4: key \"group\": 3 is not the group of the last group line");
  EXPECT_EQ(error_of(kBefore + end + more + kBlock + more),
            "r.json: line 5: stands after the end line, which must be the last");
  EXPECT_EQ(error_of(kBefore + R"({"type":"end","reason":"great"})" + more),
            "r.json: line 4: key \"reason\" is not one of complete, budget, interrupted, failed");
}

TEST(Record, RefusesAnswersThatCannotBe) {
  const auto error_with = [](const char* figures) {
    return error_of(kHeader + "\n{\"type\":\"logits\",\"workload\":\"pp512\"," + figures + "}\n");
  };
  EXPECT_EQ(error_with(R"("rows":1,"top1_agreement_ratio":1,"kl_nats_mean":0)"), "no error");
  EXPECT_EQ(error_with(R"("rows":1,"top1_agreement_ratio":null,"kl_nats_mean":null)"), "no error");
  EXPECT_EQ(error_with(R"("rows":0,"top1_agreement_ratio":1,"kl_nats_mean":0)"),
            "r.json: line 2: key \"rows\" is missing or not at least 1");
  EXPECT_EQ(error_with(R"("rows":1,"top1_agreement_ratio":9,"kl_nats_mean":0)"),
            "r.json: line 2: key \"top1_agreement_ratio\" is missing or not from 0 to 1");
  EXPECT_EQ(error_with(R"("rows":1,"top1_agreement_ratio":1,"kl_nats_mean":-5)"),
            "r.json: line 2: key \"kl_nats_mean\" is missing or not at least 0");
}

TEST(Record, RefusesAnotherVersion) {
  std::string header = kHeader;
  header.replace(header.find("\"version\":2,"), 12, "\"version\":1,");
  EXPECT_NE(error_of(header + "\n").find("has version 1, this program reads version 2"), std::string::npos);
}

TEST(Record, KnownLinesSurviveWriterAndReader) {
  const auto record = parse(kBefore + kBlock + "\n");
  ASSERT_TRUE(record);
  const auto again = parse(record_line(record->header) + "\n" + record_line(record->workloads[0]) + "\n" +
                           group_line(2) + "\n" + record_line(record->blocks[0]) + "\n");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(record_line(again->header), record_line(record->header));
  EXPECT_EQ(record_line(again->blocks[0]), record_line(record->blocks[0]));
  EXPECT_EQ(again->blocks[0].passes.at(0).instrument_ns, 3);
  EXPECT_EQ(again->header.seed, 7U);
}

TEST(Record, TakesABlockAsTheEngineSentIt) {
  const std::string sent =
      R"({"workload":"tg","arm":"baseline","passes":[{"wall_ns":1,"graph_ns":1,"digest":0}],"digests":[["aa"]],)"
      R"("started_ns":1,"ended_ns":2,"elapsed_ns":1})";
  const auto record = parse(kBefore + block_line({Side::kA, "pp512", 2, 2, 3, 4, 5}, sent) + "\n");
  ASSERT_TRUE(record) << record.error().message;
  EXPECT_EQ(record->blocks.at(0).arm, "baseline");
  EXPECT_EQ(record->blocks.at(0).place.round, 2);
}

TEST(Record, ReadsWhatPrepareGave) {
  const std::string arms =
      R"({"type":"arms","side":"a","workload":"tg","group":1,"arms":[{"id":"replay:norm:sibling:2","kind":"replay",)"
      R"("scope":"norm","copies":2,"units":[{"unit":[0,1],"copies":2,"weights":"sibling","stride":1},)"
      R"({"unit":[0,2],"copies":2,"weights":"sibling","stride":1}]}],"prepared":{"arms":[{"id":"replay:norm:sibling:2",)"
      R"("units":[{"unit":[0,1],"weights":"same","read_bytes":10,"reuse_distance_bytes":99}],)"
      R"("refused":[{"unit":[0,2],"reason":"in place"}],"scratch_bytes":1,"shadow_bytes":0}]}})";
  const auto record = parse(kHeader + "\n" + arms + "\n");
  ASSERT_TRUE(record) << record.error().message;
  const Arm& arm = record->arms.at(0).arms.at(0);
  EXPECT_EQ(arm.scope, "norm");
  EXPECT_EQ(arm.copies, 2);
  ASSERT_EQ(arm.units.size(), 1U);
  EXPECT_EQ(arm.units[0].weights, "same");
  EXPECT_EQ(arm.units[0].reuse_distance_bytes, 99);
  EXPECT_EQ(arm.refused.at(0).reason, "in place");
}

}  // namespace
}  // namespace opledger::core
