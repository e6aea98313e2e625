// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/session/message_rings.h"

#include <sys/mman.h>

#include <cstring>

#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/rings/shared_word.h"

namespace rocegw::client {

MessageRings::Put MessageRings::PutRequest(const void* message, uint32_t size) {
  if (!open_ || size > ROCEGW_RING_MESSAGE_MAX) return Put::kNot;
  if ((LoadAcquire(&rings_->requests) & ROCEGW_RING_CLOSED) != 0) {
    __atomic_store_n(&open_, false, __ATOMIC_RELAXED);
    return Put::kNot;
  }
  if (LoadAcquire(&rings_->daemon_awake) == 0 ||
      LoadAcquire(&rings_->socket_requests_taken) != socket_requests_) {
    return Put::kNot;
  }
  const uint32_t waiting = (requests_ - LoadAcquire(&rings_->requests_taken)) & ROCEGW_RING_COUNT;
  if (waiting >= ROCEGW_RING_SLOTS) return Put::kNot;
  rocegw_ring_slot& slot = rings_->request[requests_ % ROCEGW_RING_SLOTS];
  slot.length = size;
  memcpy(slot.message, message, size);
  // Fails if the daemon closes the ring meanwhile.
  uint32_t before = requests_;
  const uint32_t behind = (requests_ + 1) & ROCEGW_RING_COUNT;
  if (!__atomic_compare_exchange_n(&rings_->requests, &before, behind, false, __ATOMIC_SEQ_CST,
                                   __ATOMIC_SEQ_CST)) {
    __atomic_store_n(&open_, false, __ATOMIC_RELAXED);
    return Put::kNot;
  }
  requests_ = behind;
  return LoadOrdered(&rings_->daemon_awake) != 0 ? Put::kIs : Put::kNeedsWake;
}

void MessageRings::Map(int descriptor, uint32_t bytes) {
  if (descriptor < 0 || bytes < sizeof(rocegw_message_rings)) return;
  // A thread that reads the old ones meanwhile does no harm.
  void* const base = RawMap(rings_, sizeof(rocegw_message_rings), PROT_READ | PROT_WRITE,
                            rings_ != nullptr ? MAP_SHARED | MAP_FIXED : MAP_SHARED, descriptor, 0);
  if (base == MAP_FAILED) return;
  RawAdvise(base, sizeof(rocegw_message_rings), MADV_DONTFORK);
  answers_taken_ = socket_answers_ = requests_ = 0;
  awake_ = false;
  rings_ = static_cast<rocegw_message_rings*>(base);
}

bool MessageRings::TakeAnswer(void* message, uint32_t* size) {
  if (rings_ == nullptr || LoadOrdered(&rings_->answers) == answers_taken_) return false;
  const rocegw_ring_slot& slot = rings_->answer[answers_taken_ % ROCEGW_RING_SLOTS];
  *size = slot.length <= ROCEGW_RING_MESSAGE_MAX ? slot.length : 0;
  memcpy(message, slot.message, *size);
  StoreRelease(&rings_->answers_taken, ++answers_taken_);
  return true;
}

bool MessageRings::MayUseSocket() const {
  return rings_ == nullptr || LoadAcquire(&rings_->socket_answers) != socket_answers_ ||
         (LoadRelaxed(&rings_->requests) & ROCEGW_RING_CLOSED) != 0;
}

void MessageRings::CountSocketAnswer() {
  if (rings_ != nullptr) StoreRelease(&rings_->socket_answers_taken, ++socket_answers_);
}

void MessageRings::SetAwake(bool awake) {
  if (rings_ == nullptr || awake == awake_) return;
  awake_ = awake;
  StoreOrdered(&rings_->client_awake, awake ? 1u : 0u);
}

void MessageRings::CutOff() {
  open_ = false;
  answers_taken_ = 0;
  if (rings_ == nullptr) return;
  RawMap(rings_, sizeof(rocegw_message_rings), PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

void MessageRings::Unmap() {
  if (rings_ != nullptr) RawUnmap(rings_, sizeof(rocegw_message_rings));
  rings_ = nullptr;
}

}  // namespace rocegw::client
