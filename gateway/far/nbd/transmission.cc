// SPDX-License-Identifier: Apache-2.0
#include "gateway/far/nbd/transmission.h"

#include <arpa/inet.h>
#include <endian.h>
#include <linux/nbd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

namespace rocegw::far {
namespace {

constexpr uint32_t kMostBytes = 32 << 20;
constexpr uint64_t kMostInFlight = 32 << 20;
constexpr uint64_t kPage = 4096;
// The flag in the upper half of the type, which is a field of its own here.
constexpr uint16_t kFua = NBD_CMD_FLAG_FUA >> 16;

struct [[gnu::packed]] RequestHeader {
  uint32_t magic;
  uint16_t flags, kind;
  uint64_t cookie;  // returned as it is
  uint64_t offset;
  uint32_t length;
};
static_assert(sizeof(RequestHeader) == sizeof(nbd_request));

struct [[gnu::packed]] ReplyHeader {
  uint32_t magic, error;
  uint64_t cookie;
};
static_assert(sizeof(ReplyHeader) == sizeof(nbd_reply));

}  // namespace

static_assert(Transmission::kFlags ==
              (NBD_FLAG_HAS_FLAGS | NBD_FLAG_SEND_FLUSH | NBD_FLAG_SEND_FUA));

struct Transmission::Request {
  Transmission* owner = nullptr;
  uint16_t kind = 0;
  bool fua = false;  // a flush follows the write
  uint64_t cookie = 0;
  uint64_t offset = 0;
  uint32_t length = 0;
  uint8_t* buffer = nullptr;
  bool pooled = false;
};

Transmission::Transmission(Space& space, uint64_t size, int socket)
    : space_(space), size_(size), socket_(socket) {}

Status Transmission::Run() {
  Status status = Serve();
  std::unique_lock lock(mutex_);
  less_.wait(lock, [this] { return requests_ == 0; });
  return status;
}

Transmission::Counts Transmission::GetCounts() {
  const std::lock_guard lock(mutex_);
  return counts_;
}

// Reads all bytes. Returns 0, or a negative errno value; -ENOTCONN: the client has closed.
int Transmission::Read(void* to, uint64_t bytes) const {
  auto* at = static_cast<uint8_t*>(to);
  while (bytes != 0) {
    const ssize_t got = recv(socket_, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0 ? -ENOTCONN : -errno;
    at += got;
    bytes -= static_cast<uint64_t>(got);
  }
  return 0;
}

Status Transmission::Serve() {
  for (;;) {
    RequestHeader header{};
    const int error = Read(&header, sizeof header);
    if (error == -ENOTCONN) return OkStatus();
    if (error != 0) return {-error, std::string("nbd socket: ") + std::strerror(-error)};
    if (ntohl(header.magic) != NBD_REQUEST_MAGIC || ntohl(header.length) > kMostBytes) {
      return {EPROTO, "nbd socket: no request"};
    }
    auto request = std::make_unique<Request>();
    request->owner = this;
    request->kind = ntohs(header.kind);
    request->fua = (ntohs(header.flags) & kFua) != 0;
    request->cookie = header.cookie;
    request->offset = be64toh(header.offset);
    request->length = ntohl(header.length);
    if (request->kind == NBD_CMD_DISC) return OkStatus();
    const bool transfers = request->kind == NBD_CMD_READ || request->kind == NBD_CMD_WRITE;
    {
      std::unique_lock lock(mutex_);
      if (!transfers) request->length = 0;
      less_.wait(lock,
                 [&] { return in_flight_ == 0 || in_flight_ + request->length <= kMostInFlight; });
      in_flight_ += request->length;
      requests_++;
    }
    if (request->length != 0) {
      const uint64_t room = (request->length + kPage - 1) / kPage * kPage;
      request->buffer = space_.Allocate(room);
      request->pooled = request->buffer != nullptr;
      if (!request->pooled) {
        request->buffer = static_cast<uint8_t*>(std::aligned_alloc(kPage, room));
      }
      if (request->buffer == nullptr) {
        OnDone(request.release(), -ENOMEM);
        return {ENOMEM, "no memory"};
      }
    }
    if (request->kind == NBD_CMD_WRITE) {
      if (const int failed = Read(request->buffer, request->length); failed != 0) {
        OnDone(request.release(), failed);
        return {-failed, std::string("nbd socket: ") + std::strerror(-failed)};
      }
    }
    Start(request.release());
  }
}

void Transmission::Start(Request* request) {
  int error = 0;
  if (request->kind == NBD_CMD_FLUSH) {
    space_.Flush(&OnDone, request);
    return;
  }
  if (request->kind != NBD_CMD_READ && request->kind != NBD_CMD_WRITE) error = -EINVAL;
  if (request->offset > size_ || request->length > size_ - request->offset ||
      request->length == 0) {
    error = -EINVAL;
  }
  if (error == 0) {
    error = space_.Submit(request->kind == NBD_CMD_READ ? Direction::kRead : Direction::kWrite,
                          request->offset, request->buffer, request->length, &OnDone, request);
  }
  if (error != 0) OnDone(request, error);
}

void Transmission::OnDone(void* argument, int status) {
  auto* request = static_cast<Request*>(argument);
  Transmission& owner = *request->owner;
  if (status == 0 && request->kind == NBD_CMD_WRITE && request->fua) {
    request->fua = false;
    owner.space_.Flush(&OnDone, request);
    return;
  }
  const std::unique_ptr<Request> owned(request);
  owner.Reply(*request, status);
  if (request->pooled) {
    owner.space_.Free(request->buffer);
  } else {
    std::free(request->buffer);
  }
  const std::lock_guard lock(owner.mutex_);
  Counts& counts = owner.counts_;
  if (status != 0) counts.failed++;
  if (request->kind == NBD_CMD_READ) {
    counts.reads++;
    counts.read_bytes += request->length;
  } else if (request->kind == NBD_CMD_WRITE) {
    counts.writes++;
    counts.written_bytes += request->length;
  } else if (request->kind == NBD_CMD_FLUSH) {
    counts.flushes++;
  }
  owner.in_flight_ -= request->length;
  owner.requests_--;
  owner.less_.notify_all();
}

// A client that has gone gets no reply, which the reading thread notices.
void Transmission::Reply(const Request& request, int status) {
  ReplyHeader header{htonl(NBD_REPLY_MAGIC), htonl(static_cast<uint32_t>(-status)), request.cookie};
  iovec pieces[] = {{&header, sizeof header}, {request.buffer, request.length}};
  const bool has_data = request.kind == NBD_CMD_READ && status == 0;
  const std::lock_guard lock(send_mutex_);
  msghdr message{};
  message.msg_iov = pieces;
  message.msg_iovlen = has_data ? 2 : 1;
  for (;;) {
    const ssize_t sent = sendmsg(socket_, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return;
    auto left = static_cast<size_t>(sent);
    while (message.msg_iovlen != 0 && left >= message.msg_iov->iov_len) {
      left -= message.msg_iov->iov_len;
      message.msg_iov++;
      message.msg_iovlen--;
    }
    if (message.msg_iovlen == 0) return;
    message.msg_iov->iov_base = static_cast<uint8_t*>(message.msg_iov->iov_base) + left;
    message.msg_iov->iov_len -= left;
  }
}

}  // namespace rocegw::far
