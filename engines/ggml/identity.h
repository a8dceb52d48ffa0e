// What the adapter says of itself, of the engine's libraries and of the machine's instruction sets.
#pragma once

#include <nlohmann/json.hpp>

namespace opledger::ggml {

inline constexpr const char* kProtocol = "2";

/// The reply to `initialize`.
nlohmann::json identity_json();

}  // namespace opledger::ggml
