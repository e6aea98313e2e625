// SPDX-License-Identifier: Apache-2.0
// Checks of the host and the process, one finding each. Pure functions; docs/operate/doctor.md
// lists their findings.
#pragma once

#include "gateway/doctor/facts.h"
#include "proto/rules/finding.h"

namespace rocegw::doctor {

using rules::Diagnosis;

Diagnosis CheckOpenFiles(const Facts& facts);
Diagnosis CheckMemoryLimit(const Facts& facts);
Diagnosis CheckLockedMemory(const Facts& facts);
Diagnosis CheckHugePages(const Facts& facts);
Diagnosis CheckProcessors(const Facts& facts);
Diagnosis CheckWorkers(const Facts& facts);
Diagnosis CheckEgress(const Facts& facts);
Diagnosis CheckClock(const Facts& facts);
Diagnosis CheckSendBuffer(const Facts& facts);
Diagnosis CheckProcessMemory(const Facts& facts);
Diagnosis CheckRemapping(const Facts& facts);
Diagnosis CheckTrustedPools(const Facts& facts);
Diagnosis CheckRuntimeDir(const Facts& facts);
Diagnosis CheckSockets(const Facts& facts);
Diagnosis CheckLibraries(const Facts& facts);

}  // namespace rocegw::doctor
