// Engines as they are named on the command line: `NAME`, `NAME@flag=value,flag="quoted, value"`, or
// `exec:/path/to/program@...` for any executable that speaks the protocol. Parses text, looks nothing up.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/result.h"

namespace opledger::session {

struct EngineSpec {
  std::string text;                          ///< as given
  std::string name;                          ///< registered name, or the program's file name
  std::string program;                       ///< only for exec:, else empty
  std::optional<std::string> model_path;     ///< `m=`
  std::map<std::string, std::string> flags;  ///< all others, names without a dash
};

/// Bad input naming the spec and the place where it stops making sense; a flag given twice is one too.
Result<EngineSpec> parse_engine_spec(std::string_view text);

/// What one engine is loaded with: the command line's flags, overridden by the spec's.
struct LoadSettings {
  std::string model_path;
  int threads = 1;
  int batch_tokens = 2048;
  int ubatch_tokens = 512;
  std::map<std::string, std::string> flags;
};

/// `common` holds flags without a dash, as the command line gave them. `t`, `b`, `ub` become numbers (bad
/// input when they are none, or threads exceed `cores`); `m` must be given by one of both.
Result<LoadSettings> load_settings(const EngineSpec& spec, const std::map<std::string, std::string>& common,
                                   int cores);

}  // namespace opledger::session
