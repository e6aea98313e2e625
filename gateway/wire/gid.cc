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

}  // namespace rocegw::wire
