// The record on disk: plain JSON Lines, or, when the name ends in `.gz`, one gzip member per line, so that a
// killed session leaves a file that every gzip can read up to its last whole line. Refuses to hide a full
// disk: the append fails, and what was written before stays whole.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/result.h"
#include "core/record/record.h"

namespace opledger::platform {

/// Writes one line at a time; each is handed to the kernel before append returns. Not thread-safe.
class RecordWriter {
 public:
  /// Begins a record of that name. Where a file with content has the name already, it stays until settle():
  /// lines go to `path` + ".part" beside it. Fails (bad input) where either cannot be written.
  static Result<RecordWriter> open(const std::string& path);

  RecordWriter(RecordWriter&& other) noexcept;
  RecordWriter& operator=(RecordWriter&& other) noexcept;
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;
  ~RecordWriter();

  /// `line` without its newline. On failure (environment: a full disk, a vanished mount) the file is cut back
  /// to its last whole line; appending may be tried again.
  Status append(std::string_view line);
  /// Gives the record its name, in place of the older file; to be called when it is worth more than that.
  /// Again: does nothing. Fails (environment) where renaming does; the lines so far stay where they are.
  Status settle();
  /// Where the lines so far lie.
  [[nodiscard]] const std::string& path() const { return part_path_.empty() ? path_ : part_path_; }

 private:
  RecordWriter(std::string path, std::string part_path, int fd)
      : path_(std::move(path)), part_path_(std::move(part_path)), fd_(fd) {}

  std::string path_;       ///< links followed where `part_path_` is used
  std::string part_path_;  ///< empty once the record has its name
  int fd_ = -1;
  bool is_gzip_ = false;
  int64_t whole_bytes_ = 0;  ///< where the last whole line ends
};

/// Fails (environment) when the file system that would hold `path` has less than `bytes` free.
Status check_room(const std::string& path, int64_t bytes);

/// A record's text. `was_cut`: the last gzip member is incomplete; the text ends where it could be read.
struct RecordText {
  std::string text;
  bool was_cut = false;
};

/// Reads a record, gzip or not (told by its first bytes). Bad input: missing, a directory, damaged.
Result<RecordText> read_record_text(const std::string& path);

/// Reads and parses.
Result<core::Record> load_record(const std::string& path);

}  // namespace opledger::platform
