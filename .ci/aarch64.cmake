# SPDX-License-Identifier: Apache-2.0
# Cross compilation for 64-bit ARM on Debian, run by qemu-user. docs/testing.md says what to install and what to compare.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)

set(libraries /usr/lib/aarch64-linux-gnu)
set(OPENSSL_CRYPTO_LIBRARY ${libraries}/libcrypto.so CACHE FILEPATH "")
# Debian's libhdf5-dev cannot be installed for two architectures: headers of this machine's, which has the same types, and
# the library itself.
set(HDF5_C_INCLUDE_DIR /usr/include/hdf5/serial CACHE PATH "")
set(HDF5_C_LIBRARY_hdf5 ${libraries}/libhdf5_serial.so.103 CACHE FILEPATH "")
set(HDF5_hdf5_LIBRARY_RELEASE ${libraries}/libhdf5_serial.so.103 CACHE FILEPATH "")
