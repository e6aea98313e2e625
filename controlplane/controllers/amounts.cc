// SPDX-License-Identifier: Apache-2.0
#include "controlplane/controllers/amounts.h"

#include <google/protobuf/descriptor.h>

#include <algorithm>
#include <limits>

namespace rocegw::controllers {
namespace {

using types::v1::Limits;

const google::protobuf::FieldDescriptor* Field(size_t kind) {
  return Limits::descriptor()->field(static_cast<int>(kind));
}

uint64_t Sum(uint64_t a, uint64_t b, uint64_t times) {
  uint64_t product = 0;
  uint64_t sum = 0;
  if (__builtin_mul_overflow(b, times, &product) || __builtin_add_overflow(a, product, &sum)) {
    return std::numeric_limits<uint64_t>::max();
  }
  return sum;
}

}  // namespace

Amounts::Amounts(const Limits& limits) {
  static_assert(Limits::kRemappedBytesFieldNumber == kAmountKinds,
                "every field of Limits is counted here");
  const auto& reflection = *Limits::GetReflection();
  for (size_t kind = 0; kind < kAmountKinds; ++kind) {
    if (!reflection.HasField(limits, Field(kind))) continue;
    Set(kind, reflection.GetUInt64(limits, Field(kind)));
  }
}

void Amounts::Set(size_t kind, uint64_t value) {
  values_[kind] = value;
  set_ |= uint32_t{1} << kind;
}

void Amounts::Add(const Amounts& more, uint64_t times) {
  for (size_t kind = 0; kind < kAmountKinds; ++kind) {
    if (more.has(kind)) values_[kind] = Sum(values_[kind], more.values_[kind], times);
  }
  set_ |= more.set_;
}

void Amounts::Subtract(const Amounts& less) {
  for (size_t kind = 0; kind < kAmountKinds; ++kind) {
    if (less.has(kind)) values_[kind] -= less.values_[kind];
  }
}

Amounts Amounts::Or(const Amounts& other) const {
  Amounts result = *this;
  for (size_t kind = 0; kind < kAmountKinds; ++kind) {
    if (!has(kind)) result.values_[kind] = other.values_[kind];
  }
  result.set_ |= other.set_;
  return result;
}

Amounts Amounts::Max(const Amounts& other) const {
  Amounts result = *this;
  for (size_t kind = 0; kind < kAmountKinds; ++kind)
    result.values_[kind] = std::max(values_[kind], other.values_[kind]);
  result.set_ |= other.set_;
  return result;
}

std::string_view Amounts::Name(size_t kind) { return Field(kind)->name(); }

}  // namespace rocegw::controllers
