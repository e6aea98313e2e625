// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/hostile/attach.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>

namespace rocegw::bench {

Attach::Attach(const char* path) {
  socket_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::strncpy(to.sun_path, path, sizeof to.sun_path - 1);
  const timeval patience{1, 0};
  setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (socket_ >= 0 && connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
    close(socket_);
    socket_ = -1;
  }
}

Attach::~Attach() {
  if (socket_ >= 0) close(socket_);
  for (const int descriptor : descriptors_) close(descriptor);
  for (const int wake : wakes_) close(wake);
  for (const auto& [number, chunk] : chunks_) {
    munmap(chunk.base, chunk.size);
    close(chunk.memory);
  }
}

bool Attach::SendBytes(std::span<const uint8_t> bytes, int descriptor) {
  iovec part{const_cast<uint8_t*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  }
  return sendmsg(socket_, &message, MSG_NOSIGNAL) >= 0;
}

bool Attach::SendWithMostDescriptors(std::span<const uint8_t> bytes, int descriptor) {
  constexpr size_t kMost = 253;  // SCM_MAX_FD
  const std::vector<int> copies(kMost, descriptor);
  iovec part{const_cast<uint8_t*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) uint8_t control[CMSG_SPACE(kMost * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* const header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(kMost * sizeof(int));
  std::memcpy(CMSG_DATA(header), copies.data(), kMost * sizeof(int));
  return sendmsg(socket_, &message, MSG_NOSIGNAL) >= 0;
}

int Attach::Answer(uint8_t* out, size_t size) {
  for (;;) {
    alignas(8) uint8_t bytes[ROCEGW_MESSAGE_MAX];
    alignas(cmsghdr) uint8_t control[CMSG_SPACE(sizeof(int))];
    iovec part{bytes, sizeof bytes};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t length = recvmsg(socket_, &message, MSG_CMSG_CLOEXEC);
    if (length < static_cast<ssize_t>(sizeof(rocegw_reply))) return -1;
    int descriptor = -1;
    if (const cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header != nullptr && header->cmsg_type == SCM_RIGHTS) {
      std::memcpy(&descriptor, CMSG_DATA(header), sizeof descriptor);
    }
    rocegw_reply header;
    std::memcpy(&header, bytes, sizeof header);
    if (header.type == ROCEGW_MSG_CHUNK || header.type == ROCEGW_MSG_WORKER) {
      Announced(header, bytes, descriptor);
      continue;
    }
    if (descriptor >= 0) descriptors_.push_back(descriptor);
    std::memcpy(out, bytes, std::min(size, static_cast<size_t>(length)));
    return header.error;
  }
}

void Attach::Announced(const rocegw_reply& header, const uint8_t* message, int descriptor) {
  if (header.type == ROCEGW_MSG_WORKER) {
    wakes_.push_back(descriptor);
    return;
  }
  rocegw_chunk_announcement chunk;
  std::memcpy(&chunk, message, sizeof chunk);
  const bool writable = chunk.read_only == 0;
  void* const base = mmap(nullptr, chunk.size, writable ? PROT_READ | PROT_WRITE : PROT_READ,
                          MAP_SHARED, descriptor, 0);
  if (base == MAP_FAILED) {
    close(descriptor);
    return;
  }
  chunks_[chunk.chunk] = {static_cast<uint8_t*>(base), chunk.size, writable, descriptor};
}

bool Attach::Hello() {
  if (!open()) return false;
  auto hello = Request<rocegw_hello>(ROCEGW_MSG_HELLO);
  hello.magic = ROCEGW_ABI_MAGIC;
  hello.major = ROCEGW_ABI_MAJOR;
  hello.minor = ROCEGW_ABI_MINOR;
  rocegw_hello_reply reply{};
  return Call(hello, reply) == 0;
}

uint32_t Attach::OpenContext() {
  rocegw_object_reply reply{};
  return Call(Request<rocegw_open_context>(ROCEGW_MSG_OPEN_CONTEXT), reply) == 0 ? reply.handle : 0;
}

uint32_t Attach::Pd(uint32_t context) {
  auto request = Request<rocegw_alloc_pd>(ROCEGW_MSG_ALLOC_PD);
  request.context = context;
  rocegw_object_reply reply{};
  return Call(request, reply) == 0 ? reply.handle : 0;
}

uint32_t Attach::Cq(uint32_t context, uint32_t entries) {
  auto request = Request<rocegw_create_cq>(ROCEGW_MSG_CREATE_CQ);
  request.context = context;
  request.entries = entries;
  rocegw_cq_reply reply{};
  return Call(request, reply) == 0 ? reply.handle : 0;
}

uint32_t Attach::Channel(uint32_t type, uint32_t context) {
  auto request = Request<rocegw_object_request>(type);
  request.handle = context;
  rocegw_object_reply reply{};
  return Call(request, reply) == 0 ? reply.handle : 0;
}

uint32_t Attach::CmId(uint32_t channel, uint64_t cookie) {
  auto request = Request<rocegw_cm_create_id>(ROCEGW_MSG_CM_CREATE_ID);
  request.channel = channel;
  request.port_space = 0x0106;  // RDMA_PS_TCP
  request.cookie = cookie;
  rocegw_object_reply reply{};
  return Call(request, reply) == 0 ? reply.handle : 0;
}

int Attach::Qp(uint32_t pd, uint32_t cq, uint32_t depth, uint32_t pieces, rocegw_qp_reply& reply) {
  auto request = Request<rocegw_create_qp>(ROCEGW_MSG_CREATE_QP);
  request.pd = pd;
  request.send_cq = request.recv_cq = cq;
  request.type = ROCEGW_QPT_RC;
  request.max_send_wr = request.max_recv_wr = depth;
  request.max_send_sge = request.max_recv_sge = pieces;
  return Call(request, reply);
}

std::unique_ptr<Attach> WithQueuePair(const char* path) {
  auto attach = std::make_unique<Attach>(path);
  if (!attach->Hello()) return nullptr;
  const uint32_t context = attach->OpenContext();
  const uint32_t pd = attach->Pd(context);
  const uint32_t cq = attach->Cq(context, 64);
  rocegw_qp_reply reply{};
  return attach->Qp(pd, cq, 16, 1, reply) == 0 ? std::move(attach) : nullptr;
}

}  // namespace rocegw::bench
