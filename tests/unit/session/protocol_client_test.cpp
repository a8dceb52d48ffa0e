// The client against a peer that the test plays over a socket pair: what it sends is written before it is
// asked.
#include "session/protocol_client.h"

#include <array>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

namespace opledger::session {
namespace {

using nlohmann::json;

class ProtocolClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
    peer_ = platform::UniqueFd(ends[0]);
    client_.emplace("llama", platform::LineChannel(platform::UniqueFd(ends[1]), 1 << 20, clock_, -1), clock_);
  }
  void peer_says(const std::string& line) {
    ASSERT_EQ(::write(peer_.fd(), (line + "\n").data(), line.size() + 1),
              static_cast<ssize_t>(line.size() + 1));
  }
  Result<json> call(size_t max_blocks = 0, const BlockHandler& on_block = {}) {
    if (Status status = client_->begin("load", {{"threads", 2}}, 5'000'000'000, {max_blocks, 0, on_block});
        !status)
      return status.error();
    Result<std::optional<json>> reply = client_->advance();
    return reply ? Result<json>(reply->value()) : reply.error();
  }

  platform::SteadyClock clock_;
  platform::UniqueFd peer_;
  std::optional<ProtocolClient> client_;
};

TEST_F(ProtocolClientTest, SendsOneRequestPerLineAndReturnsTheResult) {
  peer_says(R"({"jsonrpc":"2.0","id":1,"result":{"ok":true}})");
  const Result<json> reply = call();
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ((*reply)["ok"], true);
  std::array<char, 200> sent{};
  ASSERT_GT(::read(peer_.fd(), sent.data(), sent.size()), 0);
  EXPECT_EQ(json::parse(sent.data()),
            json::parse(R"({"jsonrpc":"2.0","id":1,"method":"load","params":{"threads":2}})"));
}

TEST_F(ProtocolClientTest, AnErrorKeepsItsKindAndNamesTheEngine) {
  peer_says(
      R"({"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"unknown flag -x","data":{"kind":"bad_input"}}})");
  const Result<json> reply = call();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, Error::Kind::kBadInput);
  EXPECT_EQ(reply.error().message, "llama: unknown flag -x");
  EXPECT_EQ(client_->last_failure(), CallFailure::kRefused);
}

TEST_F(ProtocolClientTest, AnErrorWithoutAKindIsTheEnginesFailure) {
  peer_says(R"({"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"two\nlines"}})");
  const Result<json> reply = call();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, Error::Kind::kFailure);
  EXPECT_EQ(reply.error().message.find('\n'), std::string::npos);
}

TEST_F(ProtocolClientTest, BlocksComeInOrderBeforeTheReply) {
  peer_says(R"({"jsonrpc":"2.0","method":"block","params":{"n":1}})");
  peer_says(R"({"jsonrpc":"2.0","method":"block","params":{"n":2}})");
  peer_says(R"({"jsonrpc":"2.0","id":1,"result":{}})");
  std::string seen;
  const Result<json> reply = call(2, [&](const json& block) -> Status {
    seen += block["n"].dump();
    return {};
  });
  ASSERT_TRUE(reply);
  EXPECT_EQ(seen, "12");
}

TEST_F(ProtocolClientTest, MoreBlocksThanAskedForAreAFlood) {
  for (int i = 0; i < 3; ++i) peer_says(R"({"jsonrpc":"2.0","method":"block","params":{}})");
  const Result<json> reply = call(2);
  ASSERT_FALSE(reply);
  EXPECT_EQ(client_->last_failure(), CallFailure::kGone);
}

TEST_F(ProtocolClientTest, AHoldIsAnsweredByContinueWhenTheCallerGoesOn) {
  ASSERT_TRUE(client_->begin("measure", json::object(), 5'000'000'000, {0, 1, {}}));
  peer_says(R"({"jsonrpc":"2.0","method":"hold","params":{}})");
  peer_says(R"({"jsonrpc":"2.0","id":1,"result":{"blocks":0}})");
  const Result<std::optional<json>> held = client_->advance();
  ASSERT_TRUE(held);
  EXPECT_FALSE(held->has_value());
  const Result<std::optional<json>> reply = client_->advance();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->value(), json({{"blocks", 0}}));
  std::array<char, 400> sent{};
  ASSERT_GT(::read(peer_.fd(), sent.data(), sent.size()), 0);
  const std::string text(sent.data());
  EXPECT_EQ(json::parse(text.substr(text.find('\n') + 1)),
            json::parse(R"({"jsonrpc":"2.0","method":"continue","params":{}})"));
}

TEST_F(ProtocolClientTest, MoreHoldsThanBurstsAreAFlood) {
  ASSERT_TRUE(client_->begin("measure", json::object(), 5'000'000'000, {0, 1, {}}));
  for (int i = 0; i < 2; ++i) peer_says(R"({"jsonrpc":"2.0","method":"hold","params":{}})");
  ASSERT_TRUE(client_->advance());
  const Result<std::optional<json>> second = client_->advance();
  ASSERT_FALSE(second);
  EXPECT_EQ(client_->last_failure(), CallFailure::kGone);
}

TEST_F(ProtocolClientTest, APeerThatClosedIsGone) {
  peer_.reset();
  const Result<json> reply = call();
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, Error::Kind::kFailure);
  EXPECT_EQ(client_->last_failure(), CallFailure::kGone);
}

class Nonsense : public ProtocolClientTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(Nonsense, IsAFailureOnOneLine) {
  peer_says(GetParam());
  const Result<json> reply = call(1);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().kind, Error::Kind::kFailure);
  EXPECT_EQ(reply.error().message.find('\n'), std::string::npos);
  EXPECT_EQ(client_->last_failure(), CallFailure::kGone);
}

INSTANTIATE_TEST_SUITE_P(
    Lines, Nonsense,
    ::testing::Values("hello", "", "[]", "42", "{}", "{\"jsonrpc\":\"1.0\",\"id\":1,\"result\":{}}",
                      "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}",
                      "{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}", "{\"jsonrpc\":\"2.0\",\"id\":1}",
                      "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{}}",
                      "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":3}",
                      "{\"jsonrpc\":\"2.0\",\"method\":\"progress\",\"params\":{}}", "\xff\xfe\x01"));

}  // namespace
}  // namespace opledger::session
