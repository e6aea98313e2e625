// SPDX-License-Identifier: Apache-2.0
#include "gateway/client/session/message_rings.h"

#include <linux/futex.h>
#include <sys/mman.h>
#include <time.h>

#include <cerrno>
#include <cstring>

#include "gateway/client/process/raw_syscall.h"
#include "gateway/client/rings/doorbell.h"
#include "gateway/client/rings/shared_word.h"

namespace rocegw::client {

MessageRings::Put MessageRings::PutRequest(const void* message, uint32_t size) {
  if (!open_ || size > ROCEGW_RING_MESSAGE_MAX) return Put::kNot;
  if ((LoadAcquire(&rings_->requests) & ROCEGW_RING_CLOSED) != 0) {
    __atomic_store_n(&open_, false, __ATOMIC_RELAXED);
    return Put::kNot;
  }
  if (LoadAcquire(&rings_->socket_requests_taken) != socket_requests_) return Put::kNot;
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
  if (LoadOrdered(&rings_->daemon_awake) != 0) return Put::kIs;
  const bool first = __atomic_exchange_n(&rings_->daemon_awake, 1, __ATOMIC_SEQ_CST) == 0;
  return first ? Put::kNeedsWake : Put::kIs;
}

bool MessageRings::WakeDaemon() const {
  const uint64_t one = 1;
  if (wake_fd_ < 0 || RawFcntl(wake_fd_, F_GETSIG, 0) != kWakeMark) return false;
  RawSyscall(SYS_write, wake_fd_, &one, sizeof(one));
  return true;
}

bool MessageRings::SetWake(int* descriptor) {
  if (*descriptor < 0 || RawFcntl(*descriptor, F_SETSIG, kWakeMark) != 0) return false;
  CloseWake();
  wake_fd_ = *descriptor;
  *descriptor = -1;
  return true;
}

void MessageRings::CloseWake() {
  if (wake_fd_ >= 0 && RawFcntl(wake_fd_, F_GETSIG, 0) == kWakeMark) RawClose(wake_fd_);
  wake_fd_ = -1;
}

bool MessageRings::Map(int descriptor, uint32_t bytes) {
  if (descriptor < 0 || wake_fd_ < 0 || bytes < sizeof(rocegw_message_rings)) return false;
  // A thread that looks at the old ones meanwhile does no harm.
  void* const base = RawMap(rings_, sizeof(rocegw_message_rings), PROT_READ | PROT_WRITE,
                            rings_ != nullptr ? MAP_SHARED | MAP_FIXED : MAP_SHARED, descriptor, 0);
  if (base == MAP_FAILED) return false;
  RawAdvise(base, sizeof(rocegw_message_rings), MADV_DONTFORK);
  answers_taken_ = socket_answers_ = requests_ = 0;
  rings_ = static_cast<rocegw_message_rings*>(base);
  return true;
}

bool MessageRings::HasAnswer() const {
  return rings_ != nullptr &&
         LoadOrdered(&rings_->answers) != __atomic_load_n(&answers_taken_, __ATOMIC_RELAXED);
}

bool MessageRings::TakeAnswer(void* message, uint32_t* size) {
  if (!HasAnswer()) return false;
  const rocegw_ring_slot& slot = rings_->answer[answers_taken_ % ROCEGW_RING_SLOTS];
  *size = slot.length <= ROCEGW_RING_MESSAGE_MAX ? slot.length : 0;
  memcpy(message, slot.message, *size);
  StoreRelease(&rings_->answers_taken, answers_taken_ + 1);
  __atomic_store_n(&answers_taken_, answers_taken_ + 1, __ATOMIC_RELAXED);
  return true;
}

bool MessageRings::in_use() const {
  return rings_ != nullptr && (LoadOrdered(&rings_->requests) & ROCEGW_RING_CLOSED) == 0;
}

bool MessageRings::SocketHasAnswers() const {
  return rings_ != nullptr && LoadAcquire(&rings_->socket_answers) !=
                                  __atomic_load_n(&socket_answers_, __ATOMIC_RELAXED);
}

void MessageRings::CountSocketAnswer() {
  if (rings_ == nullptr) return;
  __atomic_store_n(&socket_answers_, socket_answers_ + 1, __ATOMIC_RELAXED);
  StoreRelease(&rings_->socket_answers_taken, socket_answers_);
}

void MessageRings::BeginWait(uint64_t request) {
  StoreOrdered(&rings_->waits[request % ROCEGW_RING_SLOTS], 1u);
}

bool MessageRings::Wait(uint64_t request, int64_t most_ns) {
  const timespec most = {most_ns / 1000000000, most_ns % 1000000000};
  const uint32_t* const word = &rings_->waits[request % ROCEGW_RING_SLOTS];
  return RawSyscall(SYS_futex, word, FUTEX_WAIT, 1, &most, nullptr, 0) != -ETIMEDOUT;
}

void MessageRings::EndWait(uint64_t request) {
  if (rings_ == nullptr) return;
  uint32_t* const word = &rings_->waits[request % ROCEGW_RING_SLOTS];
  if (__atomic_exchange_n(word, 0, __ATOMIC_SEQ_CST) != 0)
    RawSyscall(SYS_futex, word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void MessageRings::CutOff() {
  open_ = false;
  answers_taken_ = 0;
  CloseWake();
  if (rings_ == nullptr) return;
  RawMap(rings_, sizeof(rocegw_message_rings), PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
}

void MessageRings::Unmap() {
  CloseWake();
  if (rings_ != nullptr) RawUnmap(rings_, sizeof(rocegw_message_rings));
  rings_ = nullptr;
}

}  // namespace rocegw::client
