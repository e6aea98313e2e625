// SPDX-License-Identifier: Apache-2.0
// The amounts of types/v1/limits.proto as numbers in a row, for sums and comparisons. Values; any
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "rocegw/types/v1/limits.pb.h"

namespace rocegw::controllers {

inline constexpr size_t kAmountKinds = 18;

class Amounts {
 public:
  Amounts() = default;
  explicit Amounts(const types::v1::Limits& limits);

  bool has(size_t kind) const { return (set_ >> kind & 1) != 0; }
  // 0 when it is not set.
  uint64_t operator[](size_t kind) const { return values_[kind]; }
  void Set(size_t kind, uint64_t value);

  // What is set in `more`, `times` over. Sums stop at the largest number; do not take back from
  // such a one.
  void Add(const Amounts& more, uint64_t times = 1);
  void Subtract(const Amounts& less);
  // This, and where it says nothing what `other` says.
  Amounts Or(const Amounts& other) const;
  // The larger of each.
  Amounts Max(const Amounts& other) const;

  // "qps", "registered_bytes", ...
  static std::string_view Name(size_t kind);

 private:
  std::array<uint64_t, kAmountKinds> values_{};
  uint32_t set_ = 0;
};

}  // namespace rocegw::controllers
