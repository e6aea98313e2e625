// SPDX-License-Identifier: Apache-2.0
#include "gateway/doctor/read_neighbours.h"

#include <linux/neighbour.h>
#include <net/if.h>

#include <algorithm>

#include "gateway/port/kernel/netlink.h"

namespace rocegw::doctor {
namespace {

using port::NetlinkMessage;
using port::NetlinkRequest;

std::vector<wire::Gid> Failed(port::NetlinkSocket& netlink, unsigned index) {
  std::vector<wire::Gid> failed;
  (void)netlink.Exchange(
      NetlinkRequest(RTM_GETNEIGH, NLM_F_DUMP, ndmsg{}), [&](const NetlinkMessage& message) {
        ndmsg header{};
        if (message.type != RTM_NEWNEIGH || !message.Read(header) ||
            header.ndm_ifindex != static_cast<int>(index) || (header.ndm_state & NUD_FAILED) == 0)
          return;
        message.Attributes(sizeof header, [&](uint16_t type, std::span<const uint8_t> value) {
          if (type == NDA_DST) failed.push_back(port::AttributeAddress(value));
        });
      });
  return failed;
}

std::vector<wire::Gid> DefaultRouters(port::NetlinkSocket& netlink, unsigned index) {
  std::vector<wire::Gid> routers;
  (void)netlink.Exchange(
      NetlinkRequest(RTM_GETROUTE, NLM_F_DUMP, rtmsg{}), [&](const NetlinkMessage& message) {
        rtmsg header{};
        if (message.type != RTM_NEWROUTE || !message.Read(header) || header.rtm_dst_len != 0)
          return;
        uint32_t output = 0;
        wire::Gid router;
        message.Attributes(sizeof header, [&](uint16_t type, std::span<const uint8_t> value) {
          if (type == RTA_OIF) output = port::AttributeU32(value);
          if (type == RTA_GATEWAY) router = port::AttributeAddress(value);
        });
        if (output == index && !router.IsZero()) routers.push_back(router);
      });
  return routers;
}

}  // namespace

void ReadNeighbours(const std::string& interface, InterfaceFacts& facts) {
  const unsigned index = if_nametoindex(interface.c_str());
  auto netlink = port::NetlinkSocket::Open();
  if (index == 0 || !netlink.ok()) return;
  facts.failed_neighbours = Failed(*netlink, index);
  for (const wire::Gid& router : DefaultRouters(*netlink, index)) {
    if (std::ranges::find(facts.failed_neighbours, router) != facts.failed_neighbours.end())
      facts.failed_routers.push_back(router);
  }
}

}  // namespace rocegw::doctor
