// SPDX-License-Identifier: Apache-2.0
// Everything about an object for people: its fields in order, indented, with amounts, times and
// enum values as people write them. Works for any message. Pure.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>

namespace rocegw::cli {

// now: seconds since 1970, for "5m ago".
std::string Description(const google::protobuf::Message& object, int64_t now);

}  // namespace rocegw::cli
