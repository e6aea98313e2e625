// SPDX-License-Identifier: Apache-2.0
// Requests as they come from a client: checked for form here, once; what they say is checked by the
// command. A message may be shorter or longer than the structure of its type (another minor
// version): what is missing is zero, what is beyond is not looked at.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/session/attach/client_lane.h"

namespace rocegw::session {

// Fills a structure of the attach protocol from received bytes.
template <typename T>
T DecodeAs(std::span<const uint8_t> bytes) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value{};
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

// nullptr when the message has the form of a request, else what is wrong with it.
const char* CheckForm(std::span<const uint8_t> bytes);

struct Request {
  rocegw_request header{};
  std::span<const uint8_t> bytes;  // the whole message; valid while the command runs
  ClientFd fd;                     // what came with it

  template <typename T>
  T As() const {
    return DecodeAs<T>(bytes);
  }
};

}  // namespace rocegw::session
