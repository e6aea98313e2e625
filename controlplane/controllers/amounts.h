// SPDX-License-Identifier: Apache-2.0
// Amounts of types/v1/limits.proto as an array of numbers, for sums and comparisons. Values; any
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
  // Returns 0 if unset.
  uint64_t operator[](size_t kind) const { return values_[kind]; }
  void Set(size_t kind, uint64_t value);

  // Adds the set values of `more`, `times` over. Sums saturate; do not subtract from a saturated
  // sum.
  void Add(const Amounts& more, uint64_t times = 1);
  void Subtract(const Amounts& less);
  // Returns this value with unset amounts from `other`.
  Amounts Or(const Amounts& other) const;
  // Returns the larger of each amount.
  Amounts Max(const Amounts& other) const;

  // "qps", "registered_bytes", ...
  static std::string_view Name(size_t kind);

 private:
  std::array<uint64_t, kAmountKinds> values_{};
  uint32_t set_ = 0;
};

}  // namespace rocegw::controllers
