// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "tests/unit/client/daemon/fake_connection.h"
#include "tests/unit/client/daemon/fake_daemon.h"

namespace rocegw::testing {
namespace {

constexpr uint64_t kChunkSize = 4u << 20;

}  // namespace

void FakeDaemon::AnnounceMemory(Connection& connection) {
  if (connection.announced) return;
  connection.announced = true;
  for (uint32_t i = 0; i < 2; ++i) {
    FakeChunk& chunk = connection.chunks[i];
    chunk.fd = memfd_create("rocegw-fake", MFD_CLOEXEC);
    chunk.size = kChunkSize;
    chunk.read_only = i == 1;
    if (ftruncate(chunk.fd, static_cast<off_t>(chunk.size)) != 0) testing::Die("ftruncate");
    chunk.base = static_cast<uint8_t*>(
        mmap(nullptr, chunk.size, PROT_READ | PROT_WRITE, MAP_SHARED, chunk.fd, 0));
    rocegw_chunk_announcement announcement{};
    announcement.header.type = ROCEGW_MSG_CHUNK;
    announcement.header.length = sizeof announcement;
    announcement.chunk = i;
    announcement.read_only = chunk.read_only ? 1 : 0;
    announcement.size = chunk.size;
    SendMessage(connection.socket, Bytes(announcement), chunk.fd);
  }
  for (uint32_t w = 0; w < options_.workers; ++w) {
    rocegw_worker_announcement announcement{};
    announcement.header.type = ROCEGW_MSG_WORKER;
    announcement.header.length = sizeof announcement;
    announcement.worker = w;
    void* line = nullptr;
    announcement.line = Allocate(connection, true, sizeof(rocegw_worker_line), &line);
    connection.lines.push_back(static_cast<rocegw_worker_line*>(line));
    connection.wake_fds.push_back(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    SendMessage(connection.socket, Bytes(announcement), connection.wake_fds.back());
  }
}

rocegw_location FakeDaemon::Allocate(Connection& connection, bool read_only, uint64_t bytes,
                                     void** place) {
  FakeChunk& chunk = connection.chunks[read_only ? 1 : 0];
  const uint64_t offset = chunk.used;
  chunk.used += (bytes + 63) / 64 * 64;
  if (chunk.used > chunk.size) testing::Die("fake chunk is full");
  *place = chunk.base + offset;
  return {read_only ? 1u : 0u, static_cast<uint32_t>(bytes), offset};
}

std::vector<uint8_t> FakeDaemon::MakeCq(Connection& connection, const RecordedRequest& request) {
  const auto asked = request.As<rocegw_create_cq>();
  FakeCq cq;
  cq.handle = next_handle_++;
  cq.cookie = asked.cookie;
  cq.channel = asked.channel;
  cq.entries = std::bit_ceil(asked.entries);
  cq.produced.resize(options_.workers);
  rocegw_cq_reply reply{};
  reply.handle = cq.handle;
  reply.entries = cq.entries;
  reply.worker_count = options_.workers;
  void* place = nullptr;
  reply.control =
      Allocate(connection, false, sizeof(rocegw_cq_control) + 64 * options_.workers, &place);
  cq.control = static_cast<rocegw_cq_control*>(place);
  reply.rings = Allocate(connection, true,
                         uint64_t{options_.workers} * cq.entries * sizeof(rocegw_cqe), &place);
  cq.rings = static_cast<rocegw_cqe*>(place);
  cq.reply = reply;
  cqs_[cq.handle] = cq;
  return Bytes(reply);
}

// Everything in the old rings that fits is moved.
std::vector<uint8_t> FakeDaemon::ResizeCq(Connection& connection, const RecordedRequest& request) {
  const auto asked = request.As<rocegw_resize_cq>();
  FakeCq& cq = cqs_[asked.cq];
  const FakeCq old = cq;
  cq.entries = cq.reply.entries = std::bit_ceil(asked.entries);
  void* place = nullptr;
  cq.reply.rings = Allocate(connection, true,
                            uint64_t{options_.workers} * cq.entries * sizeof(rocegw_cqe), &place);
  cq.rings = static_cast<rocegw_cqe*>(place);
  for (uint32_t w = 0; w < options_.workers; ++w)
    for (uint32_t back = 1; back <= std::min({cq.entries, old.entries, cq.produced[w]}); ++back) {
      const uint32_t index = cq.produced[w] - back;
      cq.rings[w * cq.entries + (index & (cq.entries - 1))] =
          old.rings[w * old.entries + (index & (old.entries - 1))];
    }
  return Bytes(cq.reply);
}

std::vector<uint8_t> FakeDaemon::ResizeSrq(Connection& connection, const RecordedRequest& request) {
  const auto asked = request.As<rocegw_modify_srq>();
  FakeSrq& srq = srqs_[asked.srq];
  const FakeSrq old = srq;
  if (asked.max_wr <= srq.reply.entries) return Bytes(srq.reply);
  srq.reply.entries = asked.max_wr;
  void* place = nullptr;
  srq.reply.order = Allocate(connection, false, uint64_t{asked.max_wr} * sizeof(uint32_t), &place);
  srq.order = static_cast<uint32_t*>(place);
  const uint32_t stride = rocegw_rq_stride(srq.reply.max_sge);
  srq.reply.slots = Allocate(connection, false, uint64_t{asked.max_wr} * stride, &place);
  srq.slots = static_cast<uint8_t*>(place);
  memcpy(srq.slots, old.slots, size_t{old.reply.entries} * stride);
  for (uint32_t back = 1; back <= old.reply.entries; ++back) {
    const uint32_t index = srq.control->producer - back;
    srq.order[index & (asked.max_wr - 1)] = old.order[index & (old.reply.entries - 1)];
  }
  return Bytes(srq.reply);
}

std::vector<uint8_t> FakeDaemon::MakeSrq(Connection& connection, const RecordedRequest& request) {
  FakeSrq srq;
  srq.request = request.As<rocegw_create_srq>();
  srq.handle = next_handle_++;
  srq.cookie = srq.request.cookie;
  srq.limit = srq.request.limit;
  rocegw_srq_reply& reply = srq.reply;
  reply.handle = srq.handle;
  reply.entries = std::bit_ceil(std::max(srq.request.max_wr, 1u));
  reply.max_sge = std::max(srq.request.max_sge, 1u);
  reply.payload_stride = options_.receive_payload ? options_.payload_stride : 0;
  reply.number = srq.request.xrcd != 0 ? kFakeSrqNumber : 0;
  void* place = nullptr;
  reply.control = Allocate(connection, false, sizeof(rocegw_srq_control), &place);
  srq.control = static_cast<rocegw_srq_control*>(place);
  reply.order = Allocate(connection, false, uint64_t{reply.entries} * sizeof(uint32_t), &place);
  srq.order = static_cast<uint32_t*>(place);
  reply.slots = Allocate(connection, false,
                         uint64_t{reply.entries} * rocegw_rq_stride(reply.max_sge), &place);
  srq.slots = static_cast<uint8_t*>(place);
  if (options_.receive_payload) {
    reply.payload =
        Allocate(connection, true, uint64_t{reply.entries} * reply.payload_stride, &place);
    srq.payload = static_cast<uint8_t*>(place);
  }
  srqs_[srq.handle] = srq;
  return Bytes(reply);
}

std::vector<uint8_t> FakeDaemon::MakeQp(Connection& connection, const RecordedRequest& request) {
  FakeQp qp;
  qp.request = request.As<rocegw_create_qp>();
  qp.handle = next_handle_++;
  qp.cookie = qp.request.cookie;
  rocegw_qp_reply& reply = qp.reply;
  reply.handle = qp.handle;
  reply.qpn = next_qpn_++;
  reply.sq_entries = std::bit_ceil(std::max(qp.request.max_send_wr, 1u));
  const bool own_receives = qp.request.srq == 0;
  reply.rq_entries = own_receives ? std::bit_ceil(std::max(qp.request.max_recv_wr, 1u)) : 0;
  reply.max_send_sge = std::max(qp.request.max_send_sge, 1u);
  reply.max_recv_sge = std::max(qp.request.max_recv_sge, 1u);
  reply.max_inline = qp.request.max_inline;
  reply.worker = reply.qpn % options_.workers;
  reply.sq_payload_stride = options_.payload_stride;
  reply.rq_payload_stride = options_.receive_payload ? options_.payload_stride : 0;
  reply.doorbell_bit = reply.qpn % ROCEGW_DOORBELL_BITS;
  void* place = nullptr;
  reply.control = Allocate(connection, false, sizeof(rocegw_qp_control), &place);
  qp.control = static_cast<rocegw_qp_control*>(place);
  reply.status = Allocate(connection, true, sizeof(rocegw_qp_status), &place);
  qp.status = static_cast<rocegw_qp_status*>(place);
  reply.sq = Allocate(connection, false,
                      uint64_t{reply.sq_entries} * rocegw_sq_stride(reply.max_send_sge), &place);
  qp.sq = static_cast<uint8_t*>(place);
  reply.sq_payload =
      Allocate(connection, false, uint64_t{reply.sq_entries} * reply.sq_payload_stride, &place);
  qp.sq_payload = static_cast<uint8_t*>(place);
  reply.rq = Allocate(connection, false,
                      uint64_t{reply.rq_entries} * rocegw_rq_stride(reply.max_recv_sge), &place);
  qp.rq = static_cast<uint8_t*>(place);
  if (options_.receive_payload && own_receives) {
    reply.rq_payload =
        Allocate(connection, true, uint64_t{reply.rq_entries} * reply.rq_payload_stride, &place);
    qp.rq_payload = static_cast<uint8_t*>(place);
  }
  reply.doorbell = Allocate(connection, false, sizeof(rocegw_doorbell_page), &place);
  qp.doorbell = static_cast<rocegw_doorbell_page*>(place);
  last_qpn_ = reply.qpn;
  qps_[reply.qpn] = qp;
  return Bytes(reply);
}

std::vector<uint8_t> FakeDaemon::MakeRegion(const RecordedRequest& request, int* fd) {
  const auto asked = request.As<rocegw_create_region>();
  FakeRegion region;
  region.handle = next_handle_++;
  region.address = asked.address;
  region.length = asked.length;
  region.fd = memfd_create("rocegw-fake-region", MFD_CLOEXEC);
  if (ftruncate(region.fd, static_cast<off_t>(region.length + (uint64_t{1} << 30))) != 0) {
    testing::Die("ftruncate");
  }
  region.base = static_cast<uint8_t*>(
      mmap(nullptr, region.length, PROT_READ | PROT_WRITE, MAP_SHARED, region.fd, 0));
  if (region.base == MAP_FAILED) testing::Die("mmap");
  regions_[region.handle] = region;
  *fd = dup(region.fd);
  rocegw_object_reply reply{};
  reply.handle = region.handle;
  return Bytes(reply);
}

void FakeDaemon::DestroyRegion(uint32_t handle) {
  const auto region = regions_.find(handle);
  if (region == regions_.end()) return;
  munmap(region->second.base, region->second.length);
  close(region->second.fd);
  regions_.erase(region);
}

// Creates contexts and channels: a handle, and the client's end of an event socket.
std::vector<uint8_t> FakeDaemon::MakeObject(Connection& connection, const RecordedRequest& request,
                                            int* fd) {
  if (request.type == ROCEGW_MSG_OPEN_CONTEXT) AnnounceMemory(connection);
  rocegw_object_reply reply{};
  reply.handle = next_handle_++;
  if (request.type != ROCEGW_MSG_ALLOC_PD) {
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
      testing::Die("socketpair");
    events_[reply.handle] = pair[0];
    *fd = pair[1];
    if (request.type == ROCEGW_MSG_OPEN_CONTEXT) contexts_.push_back(reply.handle);
  }
  return Bytes(reply);
}

}  // namespace rocegw::testing
