// SPDX-License-Identifier: Apache-2.0
// Result of a control-path operation: success, or an errno with a text that names the remedy. Not
// used on the packet path.
#pragma once

#include <string>
#include <utility>
#include <variant>

namespace rocegw {

class [[nodiscard]] Status {
 public:
  Status() = default;
  // error is an errno value; text is one line for a person.
  Status(int error, std::string text) : error_(error), text_(std::move(text)) {}

  bool ok() const { return error_ == 0; }
  int error() const { return error_; }
  const std::string& text() const { return text_; }

 private:
  int error_ = 0;
  std::string text_;
};

inline Status OkStatus() { return {}; }

template <typename T>
class [[nodiscard]] StatusOr {
 public:
  StatusOr(T value) : content_(std::move(value)) {}         // NOLINT(google-explicit-constructor)
  StatusOr(Status status) : content_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return content_.index() == 0; }
  Status status() const { return ok() ? OkStatus() : *std::get_if<1>(&content_); }
  T& value() { return *std::get_if<0>(&content_); }
  const T& value() const { return *std::get_if<0>(&content_); }
  T& operator*() { return value(); }
  T* operator->() { return &value(); }

 private:
  std::variant<T, Status> content_;
};

}  // namespace rocegw
