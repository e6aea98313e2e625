// SPDX-License-Identifier: Apache-2.0
#include "gateway/session/attach/message_rings.h"

#include <linux/futex.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "gateway/shm/untrusted.h"

namespace rocegw::session {
namespace {

void StoreOrdered(uint32_t* word, uint32_t value) {
  __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

}  // namespace

uint64_t MessageRings::MemoryBytes() {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return (sizeof(rocegw_message_rings) + page - 1) / page * page;
}

StatusOr<std::unique_ptr<MessageRings>> MessageRings::Create(Charges charges) {
  auto memory = shm::Chunk::Create(MemoryBytes(), shm::Writer::kClient);
  if (!memory.ok()) return memory.status();
  if (Status allocated = (*memory)->Prefault(); !allocated.ok()) return allocated;
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return Status(errno, "an eventfd could not be made");
  return std::unique_ptr<MessageRings>(
      new MessageRings(std::move(*memory), std::move(wake), std::move(charges)));
}

void MessageRings::SetAwake(bool awake) { StoreOrdered(&rings().daemon_awake, awake ? 1 : 0); }

uint32_t MessageRings::Waiting() const {
  const uint32_t count = closed_ ? last_request_ : shm::LoadOrdered(&rings().requests);
  return (count - requests_taken_) & ROCEGW_RING_COUNT;
}

bool MessageRings::HasRequest() const { return Waiting() != 0; }

MessageRings::Request MessageRings::TakeRequest(Buffer& buffer) {
  const uint32_t waiting = Waiting();
  if (waiting == 0) return {};
  if (waiting > ROCEGW_RING_SLOTS)
    return {Taken::kBroken, 0, "its ring of requests has more than fit"};
  const rocegw_ring_slot& slot = rings().request[requests_taken_ % ROCEGW_RING_SLOTS];
  uint32_t length = 0;
  shm::CopyOut(&length, &slot.length, sizeof length);
  if (length > buffer.size())
    return {Taken::kBroken, 0, "a request in its ring is longer than a slot"};
  shm::CopyOut(buffer.data(), slot.message, length);
  requests_taken_ = (requests_taken_ + 1) & ROCEGW_RING_COUNT;
  shm::StoreRelease(&rings().requests_taken, requests_taken_);
  return {Taken::kMessage, length, ""};
}

void MessageRings::CountSocketRequest() {
  shm::StoreRelease(&rings().socket_requests_taken, ++socket_requests_);
}

bool MessageRings::PutAnswer(std::span<const uint8_t> message) {
  rocegw_message_rings& rings = this->rings();
  if (closed_ || message.size() > ROCEGW_RING_MESSAGE_MAX) return false;
  if (shm::LoadAcquire(&rings.socket_answers_taken) != socket_answers_) return false;
  if (answers_ - shm::LoadAcquire(&rings.answers_taken) >= ROCEGW_RING_SLOTS) return false;
  rocegw_ring_slot& slot = rings.answer[answers_ % ROCEGW_RING_SLOTS];
  slot.length = static_cast<uint32_t>(message.size());
  std::memcpy(slot.message, message.data(), message.size());
  StoreOrdered(&rings.answers, ++answers_);
  return true;
}

void MessageRings::CountSocketAnswer() {
  shm::StoreRelease(&rings().socket_answers, ++socket_answers_);
}

void MessageRings::WakeWaiter(uint64_t request) {
  uint32_t* const waits = &rings().waits[request % ROCEGW_RING_SLOTS];
  if (__atomic_exchange_n(waits, 0, __ATOMIC_SEQ_CST) == 0) return;
  ::syscall(SYS_futex, waits, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void MessageRings::Close() {
  if (std::exchange(closed_, true)) return;
  SetAwake(false);
  last_request_ = __atomic_fetch_or(&rings().requests, ROCEGW_RING_CLOSED, __ATOMIC_SEQ_CST);
  for (uint64_t i = 0; i < ROCEGW_RING_SLOTS; ++i) WakeWaiter(i);
}

}  // namespace rocegw::session
