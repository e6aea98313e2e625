// SPDX-License-Identifier: Apache-2.0
// A number that tells whether two ends know the same objects at the same revisions, whatever their
// order. Against mistakes, not against people. Pure; any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace rocegw::model {

// Of one object; those of several are added, modulo 2^64. See Hello.objects_digest.
uint64_t ObjectDigest(std::string_view name, int64_t revision);

}  // namespace rocegw::model
