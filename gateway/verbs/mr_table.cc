// SPDX-License-Identifier: Apache-2.0
#include "gateway/verbs/mr_table.h"

namespace rocegw::verbs {
namespace {

RemotePlace PlaceIn(const RegionConfig& region, uint64_t va, uint64_t length) {
  const uint64_t in_region = va - region.iova;
  return {region.address + in_region, region.DirectAt(in_region, length)};
}

bool Grants(const RegionConfig* region, SessionId session, uint32_t pd, uint32_t access) {
  return region != nullptr && region->session == session && region->pd == pd &&
         (region->access & access) == access;
}

}  // namespace

bool MrTable::Replace(const RegionConfig& region) {
  RegionConfig* const linked = regions_.Find(region.key.value);
  if (linked == nullptr) return false;
  *linked = region;
  return true;
}

const RegionConfig* MrTable::Find(MemoryKey key, SessionId session, uint32_t pd, uint32_t access,
                                  uint64_t va, uint64_t length) const {
  const RegionConfig* region = regions_.Find(key.value);
  return Grants(region, session, pd, access) && region->Holds(va, length) ? region : nullptr;
}

std::optional<RemotePlace> MrTable::FindRemote(const RemoteUser& user, MemoryKey key,
                                               uint32_t access, uint64_t va,
                                               uint64_t length) const {
  if (const RegionConfig* const region = Find(key, user.session, user.pd, access, va, length))
    return PlaceIn(*region, va, length);
  const MemoryWindow* const window = FindWindow(key);
  MemoryWindow::Place place;
  if (window == nullptr || !window->Find(user, key, access, va, length, place)) return std::nullopt;
  const RegionConfig* const region =
      Find(place.region, user.session, user.pd, 0, place.address, length);
  if (region == nullptr) return std::nullopt;
  return PlaceIn(*region, place.address, length);
}

bool MrTable::GrantsWhole(const RemoteUser& user, MemoryKey key, uint32_t access) const {
  return Grants(regions_.Find(key.value), user.session, user.pd, access);
}

bool MrTable::Bind(const RemoteUser& user, const BindRequest& request) const {
  MemoryWindow* const window = FindWindow(request.before);
  return window != nullptr && window->Bind(user, request, regions_.Find(request.region.value));
}

bool MrTable::Invalidate(const RemoteUser& user, MemoryKey key) const {
  MemoryWindow* const window = FindWindow(key);
  return window != nullptr && window->Invalidate(user, key);
}

}  // namespace rocegw::verbs
