// SPDX-License-Identifier: Apache-2.0
#include "gateway/device_memory/cuda.h"

#include <dlfcn.h>

#include <cerrno>
#include <cstring>

namespace rocegw::device_memory {

StatusOr<std::shared_ptr<const Cuda>> Cuda::Load(const std::string& library) {
  void* const handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = ::dlerror();
    return Status(ENODEV, "CUDA: " + std::string(why == nullptr ? "no library" : why));
  }
  auto cuda = std::make_shared<Cuda>();
#define ROCEGW_CUDA_LOOK_UP(field, name, parameters)                             \
  cuda->field = reinterpret_cast<decltype(cuda->field)>(::dlsym(handle, #name)); \
  if (cuda->field == nullptr) return Status(ENODEV, "CUDA: " + library + " lacks " #name);
  ROCEGW_CUDA_FUNCTIONS(ROCEGW_CUDA_LOOK_UP)
#undef ROCEGW_CUDA_LOOK_UP
  const CuResult result = cuda->init(0);
  if (result != kCuSuccess) {
    return Status(ENODEV, "CUDA: cuInit gives " + std::to_string(result));
  }
  return std::shared_ptr<const Cuda>(std::move(cuda));
}

StatusOr<CuDevice> Cuda::Find(const CuUuid& uuid) const {
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
  return Status(ENODEV, "CUDA: the gateway does not see that device");
}

}  // namespace rocegw::device_memory
