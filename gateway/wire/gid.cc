// SPDX-License-Identifier: Apache-2.0
#include "gateway/wire/gid.h"

#include <arpa/inet.h>

namespace rocegw::wire {

std::optional<Gid> ParseGid(const std::string& text) {
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return Gid::FromV4(ntohl(v4.s_addr));
  Gid gid;
  if (inet_pton(AF_INET6, text.c_str(), gid.bytes.data()) == 1) return gid;
  return std::nullopt;
}

std::string AddressText(const Gid& gid) {
  if (gid.IsZero()) return "";
  char text[INET6_ADDRSTRLEN];
  const void* const bytes = gid.IsV4() ? gid.bytes.data() + 12 : gid.bytes.data();
  return inet_ntop(gid.IsV4() ? AF_INET : AF_INET6, bytes, text, sizeof text);
}

}  // namespace rocegw::wire
