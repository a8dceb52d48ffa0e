// Puts any engine executable through the protocol: the work of `opledger engine check`. It looks at what the
// protocol promises (forms, sums, digests, endings), not at how fast anything is.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "platform/clock.h"
#include "session/engine.h"

namespace opledger::session {

enum class ConformanceStatus { kHeld, kFailed, kNotRun };

struct ConformanceCheck {
  std::string name;
  ConformanceStatus status = ConformanceStatus::kNotRun;
  std::string text;  ///< what was seen, or why it did not run
};

struct ConformanceReport {
  std::vector<ConformanceCheck> checks;
  /// Every check that ran held, and at least one ran.
  [[nodiscard]] bool conforms() const;
};

struct ConformanceOptions {
  EngineProgram program;
  std::optional<std::string> model_path;  ///< without one only what needs no model is checked
  int threads = 1;
  int64_t prefill_tokens = 16;
  int64_t decode_tokens = 4;
  int64_t depth_tokens = 8;
  /// Told each check as it is decided.
  std::function<void(const ConformanceCheck&)> on_check;
};

/// An Error only when the engine cannot be started at all; whatever it does afterwards is a check that
/// failed.
Result<ConformanceReport> check_conformance(const ConformanceOptions& options, const EngineContext& context);

}  // namespace opledger::session
