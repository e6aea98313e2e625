// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/xdp/xdp_program.h"

#include <linux/if_link.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gateway/port/xdp/bpf_call.h"
#include "gateway/port/xdp/xdp_filter.h"

namespace rocegw::port {
namespace {

constexpr uint32_t kMaxReceiveQueues = 4096;

Status NoRight(const std::string& what, int error) {
  std::string text = what + ": " + std::strerror(error);
  if (error == EPERM || error == EACCES) {
    text +=
        "; mode af_xdp needs CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW (in systemd: "
        "AmbientCapabilities=); mode udp needs none of them";
  } else if (error == ENOSYS || error == EINVAL) {
    text +=
        "; mode af_xdp needs Linux 5.18 or later with CONFIG_BPF_SYSCALL and "
        "CONFIG_XDP_SOCKETS; use mode udp or af_packet";
  }
  return {error, text};
}

}  // namespace

StatusOr<XdpProgram> XdpProgram::Load(uint16_t udp_port) {
  XdpProgram program;
  BpfObject sockets = MakeBpfMap({BPF_MAP_TYPE_XSKMAP, 4, 4, kMaxReceiveQueues});
  if (sockets.error != 0) return NoRight("cannot make a map of AF_XDP sockets", sockets.error);
  BpfObject addresses =
      MakeBpfMap({BPF_MAP_TYPE_HASH, sizeof(wire::Gid), 4, uint32_t{kMaxAddresses}});
  if (addresses.error != 0) return NoRight("cannot make a map of addresses", addresses.error);
  const auto code =
      XdpFilter({.sockets = sockets.fd.get(), .addresses = addresses.fd.get()}, udp_port);
  std::string log;
  BpfObject loaded = LoadXdpProgram(code, BPF_F_XDP_HAS_FRAGS, log);
  if (loaded.error != 0) {
    Status status = NoRight("the kernel does not take the XDP program", loaded.error);
    if (!log.empty()) status = {status.error(), status.text() + "; its verifier: " + log};
    return status;
  }
  program.sockets_ = std::move(sockets.fd);
  program.addresses_ = std::move(addresses.fd);
  program.program_ = std::move(loaded.fd);
  return program;
}

Status XdpProgram::Attach(const std::string& interface, unsigned interface_index) {
  BpfObject link = AttachXdpProgram(program_.get(), interface_index, XDP_FLAGS_DRV_MODE);
  in_driver_ = link.error == 0;
  // EBUSY and EEXIST: another program is there, in whatever mode. Other errors: the driver has no
  // XDP, or not with this MTU.
  if (link.error != 0 && link.error != EBUSY && link.error != EEXIST)
    link = AttachXdpProgram(program_.get(), interface_index, XDP_FLAGS_SKB_MODE);
  if (link.error == EBUSY || link.error == EEXIST) {
    return {link.error, "interface " + interface +
                            " has another XDP program already (`ip -d link show dev " + interface +
                            "` shows it); `ip link set dev " + interface +
                            " xdp off` removes one that no program holds, or use mode udp"};
  }
  if (link.error != 0) return NoRight("cannot attach the XDP program to " + interface, link.error);
  link_ = std::move(link.fd);
  return OkStatus();
}

Status XdpProgram::AddSocket(uint32_t receive_queue, int socket) {
  const int error = SetBpfMapEntry(sockets_.get(), &receive_queue, &socket);
  if (error == 0) return OkStatus();
  return {error, "cannot give receive queue " + std::to_string(receive_queue) +
                     " to its AF_XDP socket: " + std::strerror(error)};
}

void XdpProgram::SetAddresses(std::span<const wire::Gid> addresses) {
  addresses = addresses.first(std::min(addresses.size(), kMaxAddresses));
  const auto has = [](std::span<const wire::Gid> list, const wire::Gid& gid) {
    return std::find(list.begin(), list.end(), gid) != list.end();
  };
  for (const wire::Gid& old : own_) {
    if (!has(addresses, old)) (void)RemoveBpfMapEntry(addresses_.get(), old.bytes.data());
  }
  const uint32_t present = 1;
  for (const wire::Gid& own : addresses) {
    if (!has(own_, own)) (void)SetBpfMapEntry(addresses_.get(), own.bytes.data(), &present);
  }
  own_.assign(addresses.begin(), addresses.end());
}

}  // namespace rocegw::port
