// SPDX-License-Identifier: Apache-2.0
// The C library's own dlsym and dlvsym, found in its symbol table: the library exports functions of
// these names and so cannot ask for them by name. Any thread.
#pragma once

namespace rocegw::client {

using DlsymFunction = void* (*)(void* handle, const char* name);
using DlvsymFunction = void* (*)(void* handle, const char* name, const char* version);

// Never nullptr: without them nothing in the process could have been loaded; aborts with a line
// otherwise.
DlsymFunction LibcDlsym();
DlvsymFunction LibcDlvsym();

// dlopen(3). As an import it would tie us to the release of glibc that moved it.
void* OpenLibrary(const char* file, int flags);

}  // namespace rocegw::client
