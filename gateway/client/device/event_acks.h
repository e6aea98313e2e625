// SPDX-License-Identifier: Apache-2.0
// Acknowledged events of an object. libibverbs counts them in the object's public structure, under
// its lock; an object is destroyed when all delivered events are acknowledged
// (ibv_get_async_event(3), ibv_get_cq_event(3)). Any thread.
#pragma once

#include <pthread.h>

#include <cstdint>

#include "gateway/client/device/objects.h"

namespace rocegw::client {

// `completed`: the counter in the object's structure.
template <typename Ibv>
void AcknowledgeEvents(Ibv* ibv, uint32_t& completed, uint32_t count) {
  pthread_mutex_lock(&ibv->mutex);
  completed += count;
  pthread_cond_signal(&ibv->cond);
  pthread_mutex_unlock(&ibv->mutex);
}

// Waits until the program has acknowledged every asynchronous event of a queue pair or shared
// receive queue that it got.
template <typename Object>
void WaitForEventAcks(Object* object) {
  auto& ibv = object->ibv;
  if (SessionOf(ibv.context)->inherited()) return;
  pthread_mutex_lock(&ibv.mutex);
  while (ibv.events_completed != object->events_delivered) {
    pthread_cond_wait(&ibv.cond, &ibv.mutex);
  }
  pthread_mutex_unlock(&ibv.mutex);
}

}  // namespace rocegw::client
