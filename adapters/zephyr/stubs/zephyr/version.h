/* The version of Zephyr that these stubs stand for: 4.4, unless the compiler is given another. */
#define ZEPHYR_VERSION(major, minor, patch) (((major) << 16) + ((minor) << 8) + (patch))
#ifndef ZEPHYR_VERSION_CODE
#define ZEPHYR_VERSION_CODE ZEPHYR_VERSION(4, 4, 0)
#endif
