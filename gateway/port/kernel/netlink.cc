// SPDX-License-Identifier: Apache-2.0
#include "gateway/port/kernel/netlink.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>

namespace rocegw::port {
namespace {

constexpr size_t kBufferBytes = 65536;

Status Failed(const char* what, int error) {
  return {error, std::string(what) + " failed: " + strerror(error)};
}

// Calls each(header, payload) for the messages in a buffer until it returns false.
template <typename Each>
void Split(std::span<const uint8_t> bytes, Each each) {
  while (bytes.size() >= NLMSG_HDRLEN) {
    nlmsghdr header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > bytes.size()) return;
    if (!each(header, bytes.first(header.nlmsg_len).subspan(NLMSG_HDRLEN))) return;
    bytes = bytes.subspan(std::min<size_t>(NLMSG_ALIGN(header.nlmsg_len), bytes.size()));
  }
}

}  // namespace

void NetlinkRequest::Add(uint16_t type, std::span<const uint8_t> value) {
  const size_t at = bytes_.size();
  bytes_.resize(at + RTA_SPACE(value.size()));
  const rtattr attribute{static_cast<uint16_t>(RTA_LENGTH(value.size())), type};
  std::memcpy(&bytes_[at], &attribute, sizeof attribute);
  if (!value.empty()) std::memcpy(&bytes_[at + RTA_LENGTH(0)], value.data(), value.size());
}

std::span<const uint8_t> NetlinkRequest::Finish(uint32_t sequence) {
  nlmsghdr header{};
  std::memcpy(&header, bytes_.data(), sizeof header);
  header.nlmsg_len = static_cast<uint32_t>(bytes_.size());
  header.nlmsg_seq = sequence;
  std::memcpy(bytes_.data(), &header, sizeof header);
  return bytes_;
}

void NetlinkMessage::Attributes(
    size_t header_size, const std::function<void(uint16_t, std::span<const uint8_t>)>& each) const {
  const size_t start = NLMSG_ALIGN(header_size);
  if (start > payload.size()) return;
  std::span<const uint8_t> bytes = payload.subspan(start);
  while (bytes.size() >= sizeof(rtattr)) {
    rtattr attribute{};
    std::memcpy(&attribute, bytes.data(), sizeof attribute);
    if (attribute.rta_len < sizeof attribute || attribute.rta_len > bytes.size()) return;
    each(attribute.rta_type & NLA_TYPE_MASK,
         bytes.first(attribute.rta_len).subspan(sizeof attribute));
    bytes = bytes.subspan(std::min<size_t>(RTA_ALIGN(attribute.rta_len), bytes.size()));
  }
}

StatusOr<NetlinkSocket> NetlinkSocket::Open(uint32_t groups) {
  const int type = SOCK_RAW | SOCK_CLOEXEC | (groups != 0 ? SOCK_NONBLOCK : 0);
  UniqueFd socket_fd(socket(AF_NETLINK, type, NETLINK_ROUTE));
  if (!socket_fd.valid()) return Failed("opening a netlink socket", errno);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  address.nl_groups = groups;
  if (bind(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return Failed("binding a netlink socket", errno);
  }
  return NetlinkSocket(std::move(socket_fd));
}

Status NetlinkSocket::Exchange(NetlinkRequest request,
                               const std::function<void(const NetlinkMessage&)>& each) {
  const std::span<const uint8_t> message = request.Finish(++sequence_);
  nlmsghdr sent{};
  std::memcpy(&sent, message.data(), sizeof sent);
  if (send(fd(), message.data(), message.size(), 0) < 0) return Failed("netlink request", errno);
  // Dumps end with NLMSG_DONE, requests for an acknowledgement with NLMSG_ERROR, others after one
  // message.
  const bool dump = (sent.nlmsg_flags & NLM_F_DUMP) == NLM_F_DUMP;
  const bool acknowledged = (sent.nlmsg_flags & NLM_F_ACK) != 0;
  std::vector<uint8_t> buffer(kBufferBytes);
  bool done = false;
  int error = 0;
  while (!done) {
    const ssize_t length = recv(fd(), buffer.data(), buffer.size(), 0);
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) return Failed("netlink answer", length < 0 ? errno : EPIPE);
    Split(std::span(buffer).first(static_cast<size_t>(length)),
          [&](const nlmsghdr& header, std::span<const uint8_t> payload) {
            if (header.nlmsg_seq != sequence_) return true;
            if (header.nlmsg_type == NLMSG_ERROR) {
              nlmsgerr answer{};
              if (payload.size() >= sizeof answer.error) {
                std::memcpy(&answer.error, payload.data(), sizeof answer.error);
              }
              error = -answer.error;
              done = true;
            } else if (header.nlmsg_type == NLMSG_DONE) {
              done = true;
            } else {
              each({header.nlmsg_type, payload});
              done = !dump && !acknowledged;
            }
            return !done;
          });
  }
  return error == 0 ? OkStatus() : Failed("netlink request", error);
}

bool NetlinkSocket::Drain(const std::function<void(const NetlinkMessage&)>& each) {
  std::vector<uint8_t> buffer(kBufferBytes);
  bool complete = true;
  while (true) {
    const ssize_t length = recv(fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (length < 0 && errno == EINTR) continue;
    if (length < 0 && errno == ENOBUFS) {
      complete = false;
      continue;
    }
    if (length <= 0) return complete;
    Split(std::span(buffer).first(static_cast<size_t>(length)),
          [&](const nlmsghdr& header, std::span<const uint8_t> payload) {
            each({header.nlmsg_type, payload});
            return true;
          });
  }
}

uint32_t AttributeU32(std::span<const uint8_t> value) {
  uint32_t number = 0;
  if (value.size() >= sizeof number) std::memcpy(&number, value.data(), sizeof number);
  return number;
}

wire::Gid AttributeAddress(std::span<const uint8_t> value) {
  wire::Gid gid;
  if (value.size() == 4) {
    gid = wire::Gid::FromV4(0);
    std::copy(value.begin(), value.end(), gid.bytes.begin() + 12);
  } else if (value.size() == gid.bytes.size()) {
    std::copy(value.begin(), value.end(), gid.bytes.begin());
  }
  return gid;
}

}  // namespace rocegw::port
