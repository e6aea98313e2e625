// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/exchange/request.h"

namespace rocegw::session {

const char* CheckForm(std::span<const uint8_t> bytes) {
  if (bytes.size() < sizeof(rocegw_request)) return "message shorter than its header";
  if (bytes.size() > ROCEGW_MESSAGE_MAX) return "message longer than the protocol allows";
  if (DecodeAs<rocegw_request>(bytes).length != bytes.size())
    return "message of another length than it says";
  return nullptr;
}

}  // namespace rocegw::session
