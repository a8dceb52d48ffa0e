// Where a session's facts go: into memory, from which the ledger is printed, and into the record's file where
// one was asked for. Every line is on its way to the disk before the next is measured.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/result.h"
#include "platform/record_file.h"

namespace opledger::session {

class RecordLog {
 public:
  explicit RecordLog(std::optional<platform::RecordWriter> file) : file_(std::move(file)) {}

  /// Environment error when the file cannot take the line (a full disk); memory has it all the same.
  Status append(std::string_view line) {
    text_ += line;
    text_ += '\n';
    return file_ ? file_->append(line) : Status{};
  }
  /// The record is worth more than an older file of its name, and takes the name.
  Status settle() { return file_ ? file_->settle() : Status{}; }
  /// Where the lines so far lie; empty without a file.
  [[nodiscard]] std::optional<std::string> path() const {
    return file_ ? std::optional(file_->path()) : std::nullopt;
  }
  /// All lines so far.
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::optional<platform::RecordWriter> file_;
  std::string text_;
};

}  // namespace opledger::session
