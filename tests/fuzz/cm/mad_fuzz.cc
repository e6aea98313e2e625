// SPDX-License-Identifier: Apache-2.0
// Any bytes as a MAD: decoding must refuse or yield values that encode to a MAD which decodes to
// the same values.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "gateway/wire/mad.h"

using rocegw::metrics::DropReason;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const uint8_t> bytes(data, size);
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
