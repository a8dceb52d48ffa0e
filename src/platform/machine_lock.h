// One measurement at a time per machine: two at once would measure each other. The lock is the kernel's
// (flock), so it goes with its holder, however that ends; the file's text only names the holder.
#pragma once

#include <string>

#include "core/base/result.h"
#include "platform/unique_fd.h"

namespace opledger::platform {

/// Held until destroyed.
class MachineLock {
 public:
  /// `command` is what a second measurement is told about us. Environment error naming the holder when taken.
  static Result<MachineLock> acquire(const std::string& path, const std::string& command);
  MachineLock(MachineLock&&) = default;
  MachineLock& operator=(MachineLock&&) = default;

  /// $OPLEDGER_LOCK (for machines whose parts are measured apart), else /tmp/opledger-measure.lock: one place
  /// for all users, which a per-user runtime folder would not be.
  static std::string default_path();

 private:
  explicit MachineLock(UniqueFd file) : file_(std::move(file)) {}
  UniqueFd file_;
};

}  // namespace opledger::platform
