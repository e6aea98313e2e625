// SPDX-License-Identifier: Apache-2.0
// Value types of the connection manager's interface: handles, endpoints, port spaces, local
// addresses, and the parameters of a connection. Numbers are in host order. Where verbs or rdma_cm
// define a number, it has that value (rdma/rdma_cma.h, infiniband/verbs.h), so that it passes the
// attach protocol unchanged.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "gateway/base/ids.h"
#include "gateway/base/psn.h"
#include "gateway/wire/gid.h"

namespace rocegw::cm {

// Handle of an rdma_cm_id; 0: none. The session layer chooses the value for ids that programs
// create. For the id of a connection request the engine chooses it, with kEngineHandleBit set.
struct CmHandle {
  uint64_t value = 0;
  auto operator<=>(const CmHandle&) const = default;  // NOLINT(modernize-use-nullptr)
};
inline constexpr uint64_t kEngineHandleBit = 1ull << 63;

// enum rdma_port_space
enum class PortSpace : uint16_t { kIpoib = 0x0002, kTcp = 0x0106, kUdp = 0x0111, kIb = 0x013F };

// enum ibv_qp_type
enum class QpType : uint8_t { kRc = 2, kUc = 3, kUd = 4, kXrcSend = 9, kXrcReceive = 10 };
// Returns true if queue pairs of this type have a requester that waits for acknowledgements and
// repeats. Their peer executes READs and atomics.
constexpr bool Requests(QpType type) { return type == QpType::kRc || type == QpType::kXrcSend; }
constexpr bool Responds(QpType type) { return type == QpType::kRc || type == QpType::kXrcReceive; }

// IP address with a port. IPv4 is ::ffff:a.b.c.d; the wildcards are :: and ::ffff:0.0.0.0.
struct Endpoint {
  wire::Gid address;
  uint16_t port = 0;
  uint32_t scope_id = 0;    // IPv6 link-local: interface; not interpreted
  uint32_t flow_label = 0;  // IPv6 flow information of a source address

  bool IsWildcard() const { return address.IsZero() || address == wire::Gid::FromV4(0); }
  bool IsLoopback() const {
    static constexpr uint8_t kSix[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    return address.IsV4() ? address.bytes[12] == 127
                          : std::equal(std::begin(kSix), std::end(kSix), address.bytes.begin());
  }
};

// Address of one of the gateway's netdevs.
struct LocalAddress {
  wire::Gid gid;
  int32_t device = 0;     // index of the verbs device
  uint8_t gid_index = 0;  // index in that device's GID table
  uint32_t mtu = 1500;    // MTU of the netdev, bytes of IP packet
  uint32_t scope_id = 0;  // interface index, for IPv6 link-local addresses
  uint64_t pool = 0;      // pool that owns the address; 0: none
};

// Enhanced connection establishment as in struct ibv_ece; sent as vendor ID field and attribute
// modifier.
struct Ece {
  uint32_t vendor_id = 0;
  uint32_t options = 0;
  bool operator==(const Ece&) const = default;
};

struct PrivateData {
  uint8_t length = 0;
  std::array<uint8_t, 255> bytes{};

  static PrivateData From(std::span<const uint8_t> data) {
    PrivateData out;
    out.length = static_cast<uint8_t>(std::min(data.size(), out.bytes.size()));
    std::copy_n(data.begin(), out.length, out.bytes.begin());
    return out;
  }
};

// Parameters of a connection: struct rdma_conn_param and rdma_ud_param in one. In events all values
// are from the receiver's point of view.
inline constexpr uint8_t kMaxDepth = 0xFF;  // "as much as the device can"
struct ConnectParams {
  Qpn qpn;
  uint32_t qkey = 0;  // UD; 0 in an accept: the default
  uint8_t responder_resources = 0;
  uint8_t initiator_depth = 0;
  bool flow_control = false;
  uint8_t retry_count = 0;
  uint8_t rnr_retry_count = 0;
  bool srq = false;
  Ece ece;
  PrivateData private_data;
};

// Private data, in bytes, that fits behind rdma_cm's own header, per message.
inline constexpr size_t kMaxConnectData = 56;
inline constexpr size_t kMaxAcceptData = 196;
inline constexpr size_t kMaxRejectData = 148;
inline constexpr size_t kMaxUdConnectData = 180;
inline constexpr size_t kMaxUdAcceptData = 136;

inline constexpr uint32_t kUdpQkey = 0x01234567;  // RDMA_UDP_QKEY

// Addresses and path of an id, as rdma_cm_id.route and the address queries show them.
struct IdInfo {
  int32_t device = -1;  // -1: bound to no device
  PortSpace port_space = PortSpace::kTcp;
  QpType qp_type = QpType::kRc;
  Endpoint local;
  Endpoint remote;
  wire::Gid source_gid;
  wire::Gid destination_gid;
  uint8_t source_gid_index = 0;
  uint8_t path_mtu = 0;  // enum ibv_mtu, 0: no route yet
  uint8_t traffic_class = 0;
  uint8_t hop_limit = 0;
  uint32_t flow_label = 0;
};

}  // namespace rocegw::cm

template <>
struct std::hash<rocegw::cm::CmHandle> {
  size_t operator()(rocegw::cm::CmHandle h) const noexcept {
    return std::hash<uint64_t>()(h.value);
  }
};
