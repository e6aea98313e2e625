// SPDX-License-Identifier: Apache-2.0
#include "gateway/shm/arena.h"

#include <iterator>
#include <limits>
#include <utility>

#include "gateway/abi/rocegw_abi.h"

namespace rocegw::shm {

void Arena::Insert(Place place, uint64_t length) {
  by_place_.emplace(place, length);
  by_size_.emplace(length, place.first, place.second);
}

void Arena::Erase(Place place, uint64_t length) {
  by_place_.erase(place);
  by_size_.erase({length, place.first, place.second});
}

Arena::Spare::Spare() {
  std::map<Place, uint64_t> places;
  places.emplace();
  place_ = places.extract(places.begin());
  std::set<Size> sizes;
  sizes.emplace();
  size_ = sizes.extract(sizes.begin());
}

void Arena::AddChunk(uint32_t chunk, uint64_t size, Spare spare) {
  spare.place_.key() = {chunk, 0};
  spare.place_.mapped() = size;
  spare.size_.value() = {size, chunk, 0};
  by_place_.insert(std::move(spare.place_));
  by_size_.insert(std::move(spare.size_));
  free_bytes_ += size;
}

void Arena::AddChunk(uint32_t chunk, uint64_t size) {
  Insert({chunk, 0}, size);
  free_bytes_ += size;
}

std::optional<ArenaBlock> Arena::Take(uint64_t bytes) {
  constexpr uint64_t kLine = ROCEGW_CACHE_LINE;
  if (bytes == 0 || bytes > std::numeric_limits<uint64_t>::max() - kLine) return std::nullopt;
  const uint64_t need = (bytes + kLine - 1) & ~(kLine - 1);
  const auto fit = by_size_.lower_bound({need, 0, 0});
  if (fit == by_size_.end()) return std::nullopt;
  const auto [length, chunk, offset] = *fit;
  auto by_size = by_size_.extract(fit);
  auto by_place = by_place_.extract(Place{chunk, offset});
  if (length > need) {
    by_size.value() = {length - need, chunk, offset + need};
    by_place.key() = {chunk, offset + need};
    by_place.mapped() = length - need;
    by_size_.insert(std::move(by_size));
    by_place_.insert(std::move(by_place));
  }
  free_bytes_ -= need;
  return ArenaBlock{chunk, offset, need};
}

bool Arena::TakeAt(const ArenaBlock& block) {
  constexpr uint64_t kLine = ROCEGW_CACHE_LINE;
  if (block.length == 0 || block.offset % kLine != 0) return false;
  auto around = by_place_.upper_bound(Place{block.chunk, block.offset});
  if (around == by_place_.begin()) return false;
  --around;
  const auto [place, free] = *around;
  const uint64_t before = block.offset - place.second;
  if (place.first != block.chunk || before >= free || block.length > free - before) return false;
  const uint64_t need = (block.length + kLine - 1) & ~(kLine - 1);
  if (need > free - before) return false;
  Erase(place, free);
  if (before != 0) Insert(place, before);
  if (before + need < free) Insert({block.chunk, block.offset + need}, free - before - need);
  free_bytes_ -= need;
  return true;
}

bool Arena::Give(const ArenaBlock& block) {
  Place place{block.chunk, block.offset};
  uint64_t length = block.length;
  auto next = by_place_.lower_bound(place);
  if (next != by_place_.end() && next->first.first == block.chunk &&
      next->first.second < block.offset + block.length) {
    return false;
  }
  if (next != by_place_.begin()) {
    const auto before = std::prev(next);
    const uint64_t end = before->first.second + before->second;
    if (before->first.first == block.chunk) {
      if (end > block.offset) return false;
      if (end == block.offset) {
        place = before->first;
        length += before->second;
        Erase(before->first, before->second);
      }
    }
  }
  if (next != by_place_.end() && next->first == Place{block.chunk, block.offset + block.length}) {
    length += next->second;
    Erase(next->first, next->second);
  }
  Insert(place, length);
  free_bytes_ += block.length;
  return true;
}

}  // namespace rocegw::shm
