// SPDX-License-Identifier: Apache-2.0
#include "gateway/flow/congestion.h"

#include <cstring>
#include <iterator>

namespace rocegw::flow {

#define ROCEGW_CC_ALGORITHM(name) extern const CcAlgorithm k##name##Algorithm;
#include "gateway/flow/cc/algorithms.def"
#undef ROCEGW_CC_ALGORITHM

namespace {

constexpr const CcAlgorithm* kAlgorithms[] = {
#define ROCEGW_CC_ALGORITHM(name) &k##name##Algorithm,
#include "gateway/flow/cc/algorithms.def"
#undef ROCEGW_CC_ALGORITHM
};
static_assert(std::size(kAlgorithms) == kCcKinds);

}  // namespace

const CcAlgorithm& AlgorithmOf(CcKind kind) { return *kAlgorithms[static_cast<size_t>(kind)]; }

CcKind FindCcKind(std::string_view name) {
  for (size_t i = 0; i < kCcKinds; ++i) {
    if (name == kAlgorithms[i]->name) return static_cast<CcKind>(i);
  }
  return CcKind::kCount;
}

CcProfile::CcProfile() {
  for (size_t kind = 0; kind < kCcKinds; ++kind) {
    const std::span<const CcParameter> parameters = kAlgorithms[kind]->parameters;
    for (size_t i = 0; i < parameters.size(); ++i) values[kind][i] = parameters[i].preset;
  }
}

const CcProfile& CcProfile::Preset() {
  static const CcProfile preset;
  return preset;
}

bool CcProfile::Set(CcKind kind, const char* parameter, uint64_t value) {
  const std::span<const CcParameter> parameters = AlgorithmOf(kind).parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (std::strcmp(parameters[i].name, parameter) != 0) continue;
    if (value < parameters[i].least || value > parameters[i].most) return false;
    values[static_cast<size_t>(kind)][i] = static_cast<uint32_t>(value);
    return true;
  }
  return false;
}

}  // namespace rocegw::flow
