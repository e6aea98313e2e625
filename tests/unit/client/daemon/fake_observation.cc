// SPDX-License-Identifier: Apache-2.0
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>

#include "tests/unit/client/daemon/fake_connection.h"
#include "tests/unit/client/daemon/fake_daemon.h"

namespace rocegw::testing {

rocegw_send_wqe* FakeQp::SendSlot(uint32_t index) const {
  const uint32_t stride = rocegw_sq_stride(reply.max_send_sge);
  return reinterpret_cast<rocegw_send_wqe*>(sq + size_t{index & (reply.sq_entries - 1)} * stride);
}

rocegw_sge* FakeQp::SendSges(uint32_t index) const {
  return reinterpret_cast<rocegw_sge*>(reinterpret_cast<uint8_t*>(SendSlot(index)) +
                                       sizeof(rocegw_send_wqe));
}

uint8_t* FakeQp::SendPayload(uint32_t index) const {
  return sq_payload + size_t{index & (reply.sq_entries - 1)} * reply.sq_payload_stride;
}

uint8_t* FakeQp::ReceivePayload(uint32_t index) const {
  return rq_payload + size_t{index & (reply.rq_entries - 1)} * reply.rq_payload_stride;
}

bool FakeQp::DoorbellRang() const {
  const uint32_t leaf = reply.doorbell_bit / 64;
  const uint64_t summary = __atomic_exchange_n(&doorbell->summary, 0, __ATOMIC_SEQ_CST);
  const uint64_t bits = __atomic_exchange_n(&doorbell->leaf[leaf], 0, __ATOMIC_SEQ_CST);
  return (summary & (uint64_t{1} << leaf)) != 0 &&
         (bits & (uint64_t{1} << (reply.doorbell_bit % 64))) != 0;
}

void FakeDaemon::Fail(uint32_t type, int error) {
  const std::lock_guard lock(mutex_);
  if (error == 0) {
    failures_.erase(type);
  } else {
    failures_[type] = error;
  }
}

void FakeDaemon::OnRequest(uint32_t type, Answer answer) {
  const std::lock_guard lock(mutex_);
  answers_[type] = std::move(answer);
}

std::unique_lock<std::recursive_mutex> FakeDaemon::LockWhenAllIsRead() const {
  std::unique_lock lock(mutex_);
  if (std::this_thread::get_id() == thread_.get_id()) return lock;
  changed_.wait(lock, [&] {
    return std::none_of(connections_.begin(), connections_.end(), [](const auto& connection) {
      int unread = 0;
      return connection->socket >= 0 && ioctl(connection->socket, FIONREAD, &unread) == 0 &&
             unread != 0;
    });
  });
  return lock;
}

std::vector<RecordedRequest> FakeDaemon::Requests(uint32_t type) const {
  const auto lock = LockWhenAllIsRead();
  std::vector<RecordedRequest> found;
  for (const RecordedRequest& request : requests_) {
    if (request.type == type) found.push_back(request);
  }
  return found;
}

std::vector<uint32_t> FakeDaemon::History() const {
  const auto lock = LockWhenAllIsRead();
  std::vector<uint32_t> types;
  types.reserve(requests_.size());
  for (const RecordedRequest& request : requests_) types.push_back(request.type);
  return types;
}

RecordedRequest FakeDaemon::Last(uint32_t type) const {
  const auto found = Requests(type);
  return found.empty() ? RecordedRequest{} : found.back();
}

size_t FakeDaemon::connections() const {
  const std::lock_guard lock(mutex_);
  return accepted_;
}

size_t FakeDaemon::hangups() const {
  const std::lock_guard lock(mutex_);
  return hangups_;
}

bool FakeDaemon::WaitForHangups(size_t count) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return hangups_ >= count; });
}

FakeQp FakeDaemon::Qp(uint32_t qpn) const {
  const std::lock_guard lock(mutex_);
  return qps_.at(qpn);
}

FakeQp FakeDaemon::LastQp() const {
  const std::lock_guard lock(mutex_);
  return qps_.at(last_qpn_);
}

std::vector<FakeRegion> FakeDaemon::Regions() const {
  const std::lock_guard lock(mutex_);
  std::vector<FakeRegion> all;
  for (const auto& [handle, region] : regions_) all.push_back(region);
  return all;
}

FakeSrq FakeDaemon::Srq(uint32_t handle) const {
  const std::lock_guard lock(mutex_);
  return srqs_.at(handle);
}

FakeCq FakeDaemon::Cq(uint32_t handle) const {
  const std::lock_guard lock(mutex_);
  return cqs_.at(handle);
}

void FakeDaemon::SetNeedWakeup(uint32_t worker, bool need) {
  const std::lock_guard lock(mutex_);
  for (auto& connection : connections_) {
    if (worker < connection->lines.size()) {
      __atomic_store_n(&connection->lines[worker]->need_wakeup, need ? 1u : 0u, __ATOMIC_SEQ_CST);
    }
  }
}

bool FakeDaemon::WasWoken(uint32_t worker) {
  const std::lock_guard lock(mutex_);
  for (auto& connection : connections_) {
    uint64_t count = 0;
    if (worker < connection->wake_fds.size() &&
        read(connection->wake_fds[worker], &count, sizeof count) == sizeof count) {
      return true;
    }
  }
  return false;
}

void FakeDaemon::Complete(uint32_t cq_handle, uint32_t worker, const FakeQp& qp, rocegw_cqe cqe) {
  const std::lock_guard lock(mutex_);
  FakeCq& cq = cqs_.at(cq_handle);
  rocegw_cqe* slot =
      cq.rings + size_t{worker} * cq.entries + (cq.produced[worker] & (cq.entries - 1));
  cqe.qpn = qp.reply.qpn;
  cqe.qp_handle = qp.handle;
  memcpy(slot, &cqe, offsetof(rocegw_cqe, sequence));
  __atomic_store_n(&slot->sequence, ++cq.produced[worker], __ATOMIC_RELEASE);
}

void FakeDaemon::SendEvent(uint32_t channel, const void* record, size_t size) {
  const std::lock_guard lock(mutex_);
  const auto event = events_.find(channel);
  if (event == events_.end()) testing::Die("no such event channel");
  if (send(event->second, record, size, MSG_NOSIGNAL) != static_cast<ssize_t>(size)) {
    testing::Die("send event");
  }
}

void FakeDaemon::SendCompletionEvent(uint32_t handle) {
  const FakeCq cq = Cq(handle);
  rocegw_completion_event event{};
  event.cookie = cq.cookie;
  event.cq = handle;
  SendEvent(cq.channel, &event, sizeof event);
}

void FakeDaemon::SendAsyncEvent(const rocegw_async_event& event) {
  uint32_t context;
  {
    const std::lock_guard lock(mutex_);
    context = contexts_.back();
  }
  SendEvent(context, &event, sizeof event);
}

void FakeDaemon::SendCmEvent(uint32_t channel, const rocegw_cm_event& event) {
  SendEvent(channel, &event, sizeof event);
}

}  // namespace rocegw::testing
