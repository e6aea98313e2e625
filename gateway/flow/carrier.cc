// SPDX-License-Identifier: Apache-2.0
#include "gateway/flow/carrier.h"

#include "gateway/wire/codec.h"

namespace rocegw::flow {

size_t CarrierAddress::EncodeBth(Psn psn, uint32_t pad, uint8_t* out) const {
  wire::Headers headers;
  headers.bth.opcode = wire::Opcode::kChannelFrame;
  headers.bth.dest_qpn = channel;
  headers.bth.psn = psn;
  headers.bth.set_hint(hint);
  headers.bth.pad_count = static_cast<uint8_t>(pad);
  return wire::EncodeHeaders(headers, out);
}

}  // namespace rocegw::flow
