// SPDX-License-Identifier: Apache-2.0
// Subset of rtnetlink(7) for the port: one request out, its answers in. A socket belongs to the
// network namespace in which it was created and to one thread. Kernel messages are checked for
// length like foreign ones. Control path.
#pragma once

#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "gateway/base/status.h"
#include "gateway/base/unique_fd.h"
#include "gateway/wire/gid.h"

namespace rocegw::port {

// Message under construction: a fixed header of its family, then attributes.
class NetlinkRequest {
 public:
  template <typename Header>
  NetlinkRequest(uint16_t type, uint16_t flags, const Header& header)
      : bytes_(NLMSG_SPACE(sizeof header)) {
    nlmsghdr message{};
    message.nlmsg_type = type;
    message.nlmsg_flags = static_cast<uint16_t>(flags | NLM_F_REQUEST);
    std::memcpy(bytes_.data(), &message, sizeof message);
    std::memcpy(bytes_.data() + NLMSG_HDRLEN, &header, sizeof header);
  }
  void Add(uint16_t type, std::span<const uint8_t> value);

  // Returns the finished message.
  std::span<const uint8_t> Finish(uint32_t sequence);

 private:
  std::vector<uint8_t> bytes_;
};

struct NetlinkMessage {
  uint16_t type = 0;
  std::span<const uint8_t> payload;

  // Reads the family's header at the front. Returns false if the message is shorter.
  template <typename Header>
  bool Read(Header& header) const {
    if (payload.size() < sizeof header) return false;
    std::memcpy(&header, payload.data(), sizeof header);
    return true;
  }
  // Calls each(type, value) for the attributes behind a header of this size.
  void Attributes(size_t header_size,
                  const std::function<void(uint16_t, std::span<const uint8_t>)>& each) const;
};

class NetlinkSocket {
 public:
  // `groups`: RTMGRP_ bits of watched changes; 0 for requests.
  static StatusOr<NetlinkSocket> Open(uint32_t groups = 0);

  // Sends the request and passes every answer to `each` until the kernel ends the answer.
  Status Exchange(NetlinkRequest request, const std::function<void(const NetlinkMessage&)>& each);

  // Reads what has arrived, without waiting. Returns false if messages were lost: read everything
  // again.
  bool Drain(const std::function<void(const NetlinkMessage&)>& each);

  int fd() const { return socket_.get(); }

 private:
  explicit NetlinkSocket(UniqueFd socket) : socket_(std::move(socket)) {}

  UniqueFd socket_;
  uint32_t sequence_ = 0;
};

// Returns an attribute's value as a number; 0 if it is too short.
uint32_t AttributeU32(std::span<const uint8_t> value);
// Returns an attribute's value as an address, by its length; zero for other lengths.
wire::Gid AttributeAddress(std::span<const uint8_t> value);

}  // namespace rocegw::port
