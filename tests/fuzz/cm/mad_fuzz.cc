// SPDX-License-Identifier: Apache-2.0
// Any bytes as a MAD, of the connection manager or of discovery: decoding must refuse or yield
// values that encode to a MAD which decodes to the same values.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "gateway/wire/gateway_mad.h"
#include "gateway/wire/mad.h"

using rocegw::metrics::DropReason;

namespace {

// What decodes encodes to the same bytes, as far as a gateway looks at them.
void CheckGatewayMad(std::span<const uint8_t> bytes) {
  if (bytes.size() < 40) return;
  const uint32_t oui = uint32_t{bytes[37]} << 16 | uint32_t{bytes[38]} << 8 | bytes[39];
  rocegw::wire::GatewayMad mad;
  if (rocegw::wire::DecodeGatewayMad(bytes, oui, mad) != DropReason::kNone) return;
  if (!rocegw::wire::IsVendorMad(bytes)) std::abort();
  if (rocegw::wire::Describe(mad.info).empty()) std::abort();
  for (const uint32_t bucket : {0u, 1u, 63u}) {
    if (mad.status == 0 && mad.info.WorkerOf({bucket << 18 | 5}) >= mad.info.workers) std::abort();
  }
  rocegw::wire::MadBytes encoded;
  rocegw::wire::EncodeGatewayMad(mad, oui, encoded);
  rocegw::wire::GatewayMad again;
  if (rocegw::wire::DecodeGatewayMad(encoded, oui, again) != DropReason::kNone || !(again == mad))
    std::abort();
  rocegw::wire::MadBytes refusal;
  if (rocegw::wire::RefuseMad(bytes, refusal) == mad.response) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
  CheckGatewayMad(bytes);
  rocegw::wire::CmMad mad;
  const DropReason reason = rocegw::wire::DecodeMad(bytes, mad);
  if (reason != rocegw::wire::CheckMad(bytes)) std::abort();
  if (reason != DropReason::kNone) return 0;
  if (rocegw::wire::Describe(mad).empty()) std::abort();
  rocegw::wire::MadBytes encoded;
  rocegw::wire::EncodeMad(mad, encoded);
  rocegw::wire::CmMad again;
  if (rocegw::wire::DecodeMad(encoded, again) != DropReason::kNone || !(again == mad)) std::abort();
  rocegw::wire::IpCmHeader header;
  if (rocegw::wire::DecodeIpCm(bytes.first<rocegw::wire::kIpCmHeaderLength>(), header)) {
    std::array<uint8_t, rocegw::wire::kIpCmHeaderLength> out{};
    rocegw::wire::EncodeIpCm(header, out);
    rocegw::wire::IpCmHeader back;
    if (!rocegw::wire::DecodeIpCm(out, back) || !(back == header)) std::abort();
  }
  return 0;
}
