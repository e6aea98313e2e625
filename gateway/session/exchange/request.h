// SPDX-License-Identifier: Apache-2.0
// Requests of clients: their form is checked here once, their values by the command. A message may
// be shorter or longer than the structure of its type (another minor version): missing bytes count
// as zero, excess bytes are ignored.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "gateway/abi/rocegw_abi.h"

namespace rocegw::session {

// Fills a structure of the attach protocol from received bytes.
template <typename T>
T DecodeAs(std::span<const uint8_t> bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value{};
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

// Returns nullptr if the message is well-formed, else what is wrong with it.
const char* CheckForm(std::span<const uint8_t> bytes);

struct Request {
  rocegw_request header{};
  std::span<const uint8_t> bytes;  // the whole message; valid while the command runs
  // Connection whose next message is this one, because it passes a descriptor; -1: it passes none.
  // RequestExchange::TakeDescriptor takes both.
  int passing = -1;

  template <typename T>
  T As() const {
    return DecodeAs<T>(bytes);
  }
};

}  // namespace rocegw::session
