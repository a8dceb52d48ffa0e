// How a function says that an expected failure happened. Our own bugs take another road: check.h.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace opledger {

/// Why something failed, in words for the person who can mend it. `kind` decides the exit code.
struct Error {
  enum class Kind {
    kBadInput,     ///< a flag, a file or a key is wrong: exit 2
    kEnvironment,  ///< the machine lacks something (memory, a library, room on a disk): exit 2
    kFailure,      ///< an engine failed: exit 3
    kInterrupted,  ///< the user stopped it: exit 130
  };
  Kind kind = Kind::kFailure;
  /// One line: names the file, flag or key, and the next step.
  std::string message;

  static Error bad_input(std::string message) { return {Kind::kBadInput, std::move(message)}; }
  static Error environment(std::string message) { return {Kind::kEnvironment, std::move(message)}; }
  static Error failure(std::string message) { return {Kind::kFailure, std::move(message)}; }
};

/// A value, or the Error that explains why there is none. Reading the absent one is our bug and throws
/// std::bad_variant_access.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT: implicit on purpose, `return value;`
  Result(Error error) : state_(std::move(error)) {}  // NOLINT: implicit on purpose, `return Error{...};`

  [[nodiscard]] bool is_ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return is_ok(); }
  T& value() & { return std::get<T>(state_); }
  const T& value() const& { return std::get<T>(state_); }
  T&& value() && { return std::get<T>(std::move(state_)); }
  T* operator->() { return &std::get<T>(state_); }
  const T* operator->() const { return &std::get<T>(state_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  [[nodiscard]] const Error& error() const { return std::get<Error>(state_); }

 private:
  std::variant<T, Error> state_;
};

/// Success without a value, or an Error.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Error error) : error_(std::move(error)) {}  // NOLINT: implicit on purpose, `return Error{...};`

  [[nodiscard]] bool is_ok() const { return !error_.has_value(); }
  explicit operator bool() const { return is_ok(); }
  [[nodiscard]] const Error& error() const { return *error_; }

 private:
  std::optional<Error> error_;
};

}  // namespace opledger
