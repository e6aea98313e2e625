// SPDX-License-Identifier: Apache-2.0
// The calls of rocegw_memory_blocks.h.
#include <cerrno>
#include <string_view>

#include "gateway/far/session/api/rocegw_memory_blocks.h"
#include "gateway/far/session/api/session_handle.h"
#include "gateway/far/session/block_pool.h"

using rocegw::far::BlockPool;
using rocegw::far::CopyStatistics;

struct rocegw_memory_blocks {
  BlockPool pool;
};

namespace {

bool IsKey(const void* key, size_t size) {
  return key != nullptr && size != 0 && size <= ROCEGW_MEMORY_MOST_KEY_BYTES;
}

std::string_view Key(const void* key, size_t size) { return {static_cast<const char*>(key), size}; }

}  // namespace

int rocegw_memory_blocks_open(rocegw_memory_session* session, uint64_t offset, uint64_t size,
                              uint64_t block_bytes, rocegw_memory_blocks** blocks) {
  auto& dispatcher = session->session->dispatcher();
  if (block_bytes == 0 || block_bytes % 4096 != 0 || block_bytes > BlockPool::kMostBlockBytes ||
      offset % block_bytes != 0 || size < block_bytes || offset > dispatcher.size() ||
      size > dispatcher.size() - offset || size / block_bytes > UINT32_MAX) {
    return -EINVAL;
  }
  *blocks = new rocegw_memory_blocks{{dispatcher, offset, size, block_bytes}};
  return 0;
}

void rocegw_memory_blocks_close(rocegw_memory_blocks* blocks) { delete blocks; }

int rocegw_memory_blocks_put(rocegw_memory_blocks* blocks, const void* key, size_t key_size,
                             const void* value, size_t length, rocegw_memory_blocks_done done,
                             void* argument) {
  if (!IsKey(key, key_size)) return -EINVAL;
  return blocks->pool.Put(Key(key, key_size), value, length, done, argument);
}

int rocegw_memory_blocks_get(rocegw_memory_blocks* blocks, const void* key, size_t key_size,
                             void* buffer, size_t size, rocegw_memory_blocks_done done,
                             void* argument) {
  if (!IsKey(key, key_size)) return -EINVAL;
  return blocks->pool.Get(Key(key, key_size), buffer, size, done, argument);
}

int64_t rocegw_memory_blocks_put_wait(rocegw_memory_blocks* blocks, const void* key,
                                      size_t key_size, const void* value, size_t length) {
  if (!IsKey(key, key_size)) return -EINVAL;
  return blocks->pool.PutAndWait(Key(key, key_size), value, length);
}

int64_t rocegw_memory_blocks_get_wait(rocegw_memory_blocks* blocks, const void* key,
                                      size_t key_size, void* buffer, size_t size) {
  if (!IsKey(key, key_size)) return -EINVAL;
  return blocks->pool.GetAndWait(Key(key, key_size), buffer, size);
}

int rocegw_memory_blocks_has(rocegw_memory_blocks* blocks, const void* key, size_t key_size) {
  return IsKey(key, key_size) && blocks->pool.Has(Key(key, key_size)) ? 1 : 0;
}

int rocegw_memory_blocks_remove(rocegw_memory_blocks* blocks, const void* key, size_t key_size) {
  if (!IsKey(key, key_size)) return -EINVAL;
  return blocks->pool.Remove(Key(key, key_size)) ? 0 : -ENOENT;
}

void rocegw_memory_blocks_get_statistics(rocegw_memory_blocks* blocks,
                                         rocegw_memory_blocks_statistics* statistics,
                                         size_t statistics_size) {
  CopyStatistics(blocks->pool.Statistics(), statistics, statistics_size);
}
