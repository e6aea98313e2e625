// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/dpdk/dpdk_packet_socket.h"

#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <rte_ethdev.h>
#include <sys/socket.h>

#include <cstring>
#include <iterator>

namespace rocegw::port {
namespace {

// Returns true for a packet socket bound to the interface. The process has no other, so it belongs
// to the queue.
bool IsPacketSocket(int fd, unsigned interface) {
  sockaddr_ll address{};
  socklen_t length = sizeof address;
  return ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0 &&
         address.sll_family == AF_PACKET && static_cast<unsigned>(address.sll_ifindex) == interface;
}

constexpr uint32_t Beyond(uint32_t ip_header, uint32_t field) {
  return ETH_HLEN + ip_header + field;
}

}  // namespace

int PacketSocketOf(uint16_t device, uint16_t receive_queue) {
  rte_eth_dev_info info{};
  if (rte_eth_dev_info_get(device, &info) != 0 || info.driver_name == nullptr ||
      std::strcmp(info.driver_name, "net_af_packet") != 0) {
    return -1;
  }
  // The driver's queue begins with its descriptor (struct pkt_rx_queue of drivers/net/af_packet);
  // the caller checks that.
  int fd = -1;
  std::memcpy(&fd, rte_eth_fp_ops[device].rxq.data[receive_queue], sizeof fd);
  return IsPacketSocket(fd, info.if_index) ? fd : -1;
}

// Offsets within the IP header: RFC 791, RFC 8200. The destination port is two bytes into the UDP
// header.
void KeepToUdpPort(int packet_socket, uint16_t udp_port) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS,
               static_cast<uint32_t>(SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 13),
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 2 * ETH_ALEN),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IPV6, 0, 4),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, Beyond(0, 6)),  // next header
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 8),
      BPF_STMT(BPF_LD | BPF_H | BPF_ABS, Beyond(40, 2)),
      BPF_JUMP(BPF_JMP | BPF_JA, 5, 0, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 5),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, Beyond(0, 9)),  // protocol
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 3),
      BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, Beyond(0, 0)),
      BPF_STMT(BPF_LD | BPF_H | BPF_IND, Beyond(0, 2)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, udp_port, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, 0),
      BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
  };
  const sock_fprog filter{static_cast<uint16_t>(std::size(program)), program};
  (void)::setsockopt(packet_socket, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter);
}

}  // namespace rocegw::port
