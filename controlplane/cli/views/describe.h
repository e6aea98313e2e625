// SPDX-License-Identifier: Apache-2.0
// Complete text of an object: its fields in order, indented, with amounts, times and enum values in
// human form. Works for any message. Pure.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>

namespace rocegw::cli {

// `now`: seconds since 1970, for "5m ago".
std::string Description(const google::protobuf::Message& object, int64_t now);

}  // namespace rocegw::cli
