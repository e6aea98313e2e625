// SPDX-License-Identifier: Apache-2.0
#include "gateway/device_memory/driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace rocegw::device_memory {
namespace {

// Returns nullptr if no library of the list is there; `why`: what the last attempt said.
void* Open(const std::string& names, int flags, std::string& why) {
  for (size_t begin = 0; begin <= names.size();) {
    const size_t end = std::min(names.find(',', begin), names.size());
    void* const handle = ::dlopen(names.substr(begin, end - begin).c_str(), RTLD_NOW | flags);
    if (handle != nullptr) return handle;
    const char* const text = ::dlerror();
    why = text == nullptr ? "no library" : text;
    begin = end + 1;
  }
  return nullptr;
}

}  // namespace

bool IsLoaded(const DriverLibraries& libraries) {
  std::string why;
  return Open(libraries.cuda, RTLD_NOLOAD, why) != nullptr ||
         Open(libraries.hip, RTLD_NOLOAD, why) != nullptr;
}

StatusOr<std::shared_ptr<const Driver>> Driver::Load(DriverKind kind, const std::string& names) {
  auto driver = std::make_shared<Driver>();
  driver->kind = kind;
  std::string why;
  void* const handle = Open(names, RTLD_LOCAL, why);
  if (handle == nullptr) return driver->Error(ENODEV, why);
#define ROCEGW_DRIVER_LOOK_UP(field, cuda, hip, parameters)  \
  driver->field = reinterpret_cast<decltype(driver->field)>( \
      ::dlsym(handle, kind == DriverKind::kCuda ? #cuda : #hip));
  ROCEGW_DRIVER_FUNCTIONS(ROCEGW_DRIVER_LOOK_UP)
  ROCEGW_DRIVER_OPTIONAL_FUNCTIONS(ROCEGW_DRIVER_LOOK_UP)
#undef ROCEGW_DRIVER_LOOK_UP
#define ROCEGW_DRIVER_CHECK(field, cuda, hip, parameters) \
  if (driver->field == nullptr)                           \
    return driver->Error(ENODEV, names + " lacks " + (kind == DriverKind::kCuda ? #cuda : #hip));
  ROCEGW_DRIVER_FUNCTIONS(ROCEGW_DRIVER_CHECK)
#undef ROCEGW_DRIVER_CHECK
  const CuResult result = driver->init(0);
  if (result != kCuSuccess) {
    return driver->Error(ENODEV, "no initialisation (" + std::to_string(result) + ")");
  }
  return std::shared_ptr<const Driver>(std::move(driver));
}

StatusOr<CuDevice> Driver::Find(const CuUuid& uuid) const {
  int count = 0;
  if (device_count(&count) != kCuSuccess) count = 0;
  for (int i = 0; i < count; ++i) {
    CuDevice found = 0;
    CuUuid its{};
    if (device(&found, i) == kCuSuccess && device_uuid(&its, found) == kCuSuccess &&
        std::memcmp(&its, &uuid, sizeof uuid) == 0) {
      return found;
    }
  }
  return Error(ENODEV, "the gateway does not see that device");
}

}  // namespace rocegw::device_memory
