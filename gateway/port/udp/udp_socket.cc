// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/udp/udp_socket.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "gateway/base/port_holders.h"

namespace rocegw::port {
namespace {

// Constant of Linux that the C library's headers of some distributions lack.
#ifndef UDP_GRO
constexpr int UDP_GRO = 104;
#endif
#ifndef UDP_NO_CHECK6_RX
constexpr int UDP_NO_CHECK6_RX = 102;
#endif
#ifndef IPV6_MULTICAST_ALL
constexpr int IPV6_MULTICAST_ALL = 29;
#endif
#ifndef SO_ATTACH_REUSEPORT_CBPF
constexpr int SO_ATTACH_REUSEPORT_CBPF = 51;
#endif

Status Failed(const char* what) {
  return {errno, std::string(what) + " failed: " + strerror(errno)};
}

bool Set(int fd, int level, int option, int value) {
  return setsockopt(fd, level, option, &value, sizeof value) == 0;
}

// The forcing form exceeds the administrator's limit but needs CAP_NET_ADMIN.
void SetBuffer(int fd, int force_option, int option, size_t bytes) {
  const auto value = static_cast<int>(bytes);
  if (!Set(fd, SOL_SOCKET, force_option, value)) (void)Set(fd, SOL_SOCKET, option, value);
}

size_t GrantedReceiveBuffer(int fd) {
  int value = 0;
  socklen_t length = sizeof value;
  if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value, &length) != 0 || value < 0) return 0;
  // The kernel doubles the requested size to pay for its own bookkeeping.
  return static_cast<size_t>(value) / 2;
}

bool SetReceiveMetadata(int fd, bool dual_stack) {
  bool ok = Set(fd, IPPROTO_IP, IP_RECVTOS, 1) && Set(fd, IPPROTO_IP, IP_RECVTTL, 1) &&
            Set(fd, SOL_SOCKET, SO_RXQ_OVFL, 1) && Set(fd, IPPROTO_UDP, UDP_GRO, 1);
  if (dual_stack) {
    ok = ok && Set(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1) &&
         Set(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1) && Set(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1) &&
         Set(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
  } else {
    ok = ok && Set(fd, IPPROTO_IP, IP_PKTINFO, 1);
  }
  return ok;
}

bool AttachProgram(int fd, int option, std::span<const sock_filter> filter) {
  const sock_fprog program{static_cast<uint16_t>(filter.size()),
                           const_cast<sock_filter*>(filter.data())};
  return setsockopt(fd, SOL_SOCKET, option, &program, sizeof program) == 0;
}

// Drops all input: one instruction, "keep 0 bytes". Before bind, so that nothing is ever queued.
bool RefuseInput(int fd) {
  const sock_filter drop_all[] = {{BPF_RET | BPF_K, 0, 0, 0}};
  return AttachProgram(fd, SO_ATTACH_FILTER, drop_all);
}

// `gid`: zero for any address.
bool Bind(int fd, int family, uint16_t port, const wire::Gid& gid) {
  if (family == AF_INET6) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(port);
    std::memcpy(&address.sin6_addr, gid.bytes.data(), gid.bytes.size());
    return bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (gid.IsV4()) address.sin_addr.s_addr = htonl(gid.V4());
  return bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

bool BindAny(int fd, int family, uint16_t port) { return Bind(fd, family, port, {}); }

// Sets DF and the send buffer. PROBE instead of DO: a forged "fragmentation needed" must not reduce
// the usable size.
bool SetSending(int fd, bool ipv4, bool ipv6, size_t buffer_bytes) {
  SetBuffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, buffer_bytes);
  return (!ipv4 || Set(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE)) &&
         (!ipv6 || (Set(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE) &&
                    Set(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1)));
}

Status CannotBind(uint16_t port, int error, const std::optional<wire::Gid>& address = {}) {
  const std::string number = std::to_string(port);
  const std::string at = address ? " of " + wire::AddressText(*address) : "";
  if (error != EADDRINUSE) {
    // The system may keep ports up to this one for programs with the capability.
    const char* const remedy = error == EACCES
                                   ? "; net.ipv4.ip_unprivileged_port_start is above that port, so "
                                     "the gateway needs CAP_NET_BIND_SERVICE"
                                   : "";
    return {error, "cannot bind UDP port " + number + at + ": " + strerror(error) + remedy};
  }
  const std::string holder = PortHolderText(PortKind::kUdp, port);
  const std::string find = "find it with `ss -lunp 'sport = :" + number + "'`";
  if (address) {
    return {error, "UDP port " + number + at + " is taken by " +
                       (holder.empty() ? "another program or the kernel's rdma_rxe" : holder) +
                       ", perhaps a rocegwd, which has it on every address: stop it, or use an "
                       "address in a network namespace of its own; " +
                       find};
  }
  if (!holder.empty()) {
    return {
        error,
        "UDP port " + number + " is taken by " + holder + ": stop it; " + find +
            (holder.starts_with("process") ? "" : " or, for the kernel's rdma_rxe, `rdma link`")};
  }
  return {error, "UDP port " + number +
                     " is taken by another program or by the kernel's rdma_rxe; " + find +
                     " or `rdma link`"};
}

constexpr int kSocketType = SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

// Opens a socket for both IP versions if the kernel has both, else for IPv4.
UniqueFd OpenDualStack(bool& dual_stack) {
  UniqueFd fd(socket(AF_INET6, kSocketType, 0));
  dual_stack = fd.valid() && Set(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, 0);
  if (!dual_stack) fd = UniqueFd(socket(AF_INET, kSocketType, 0));
  return fd;
}

}  // namespace

StatusOr<ReceiveSocket> OpenReceiveSocket(const ReceiveSocketOptions& options) {
  ReceiveSocket result;
  result.fd = OpenDualStack(result.dual_stack);
  const int family = result.dual_stack ? AF_INET6 : AF_INET;
  const int fd = result.fd.get();
  if (!result.fd.valid()) return Failed("opening a UDP socket");
  if (!options.address && !Set(fd, SOL_SOCKET, SO_REUSEPORT, 1)) return Failed("SO_REUSEPORT");
  if (!SetReceiveMetadata(fd, result.dual_stack)) return Failed("asking for packet metadata");
  // A group joined on one socket must not reach the others of the reuseport group.
  (void)Set(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
  if (result.dual_stack) (void)Set(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0);
  result.buffer_bytes = SetReceiveBuffer(fd, options.buffer_bytes);
  if (!options.steering.empty() && !AttachProgram(fd, SO_ATTACH_REUSEPORT_CBPF, options.steering)) {
    return Failed("attaching the steering program");
  }
  if (!Bind(fd, family, options.port, options.address.value_or(wire::Gid{})))
    return CannotBind(options.port, errno, options.address);
  return result;
}

size_t SetReceiveBuffer(int fd, size_t bytes) {
  SetBuffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, bytes);
  return GrantedReceiveBuffer(fd);
}

void SetMergedReceive(int fd, bool merged) { (void)Set(fd, IPPROTO_UDP, UDP_GRO, merged ? 1 : 0); }

bool FilterInput(int fd, std::span<const sock_filter> program) {
  const int unused = 0;
  const auto detach = [&] {
    return setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused) == 0 ||
           errno == ENOENT;
  };
  if (program.empty()) return detach();
  if (AttachProgram(fd, SO_ATTACH_FILTER, program)) return true;
  // Two programs may not fit the socket's option memory (net.core.optmem_max) at the same time.
  return errno == ENOMEM && detach() && AttachProgram(fd, SO_ATTACH_FILTER, program);
}

bool LetSend(int receive_fd, size_t buffer_bytes) {
  int family = 0;
  socklen_t length = sizeof family;
  if (getsockopt(receive_fd, SOL_SOCKET, SO_DOMAIN, &family, &length) != 0) return false;
  return SetSending(receive_fd, true, family == AF_INET6, buffer_bytes);
}

StatusOr<TransmitSocket> OpenTransmitSocket(int family, std::span<const uint16_t> source_ports,
                                            size_t buffer_bytes) {
  TransmitSocket result{.fd = UniqueFd(socket(family, kSocketType, 0)), .port = 0};
  const int fd = result.fd.get();
  if (!result.fd.valid()) return Failed("opening a UDP socket");
  if (!RefuseInput(fd)) return Failed("SO_ATTACH_FILTER");
  if (!Set(fd, SOL_SOCKET, SO_REUSEPORT, 1)) return Failed("SO_REUSEPORT");
  const bool ipv6 = family == AF_INET6;
  if (ipv6 && !Set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1)) return Failed("IPV6_V6ONLY");
  if (!SetSending(fd, !ipv6, ipv6, buffer_bytes)) return Failed("forbidding fragmentation");
  for (const uint16_t port : source_ports) {
    if (BindAny(fd, family, port)) {
      result.port = port;
      return result;
    }
    if (errno != EADDRINUSE) break;
  }
  return Failed("binding a source port");
}

StatusOr<UniqueFd> OpenSilentSocket(uint16_t port, bool shared) {
  bool dual_stack = false;
  UniqueFd fd = OpenDualStack(dual_stack);
  if (!fd.valid()) return Failed("opening a UDP socket");
  if (!RefuseInput(fd.get())) return Failed("SO_ATTACH_FILTER");
  if (shared && !Set(fd.get(), SOL_SOCKET, SO_REUSEPORT, 1)) return Failed("SO_REUSEPORT");
  if (!BindAny(fd.get(), dual_stack ? AF_INET6 : AF_INET, port)) {
    // Callers try thousands of shared ports, and naming a holder takes a look at all sockets.
    return shared ? Failed("binding a source port") : CannotBind(port, errno);
  }
  return fd;
}

}  // namespace rocegw::port
